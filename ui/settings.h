// SPDX-License-Identifier: GPL-2.0-only
/*
 * The settings file: lines "name = value", '#' begins a comment.
 *
 *   columns.vms = VM,%STEAL,MAX@v      columns of a table
 *   sort.vms = %CPU reverse            its order
 *   pane = 2                           the host's pane
 *   vcpus = yes                        a row a vCPU
 *   idle = no                          idle exits in the tables
 *   totals = yes                       figures since start
 *   theme = light                      dark, light, auto
 */
#ifndef KVMTOP_SETTINGS_H
#define KVMTOP_SETTINGS_H

#include <stddef.h>

#include "view.h"

/* The first line that was not understood. */
struct settings_wrong {
	int line; /* from 1; 0: none */
	char text[60]; /* its beginning, as it stands there; of columns the first that there is not
			*/
};

/*
 * Takes what it understands of a text (len bytes); returns how many lines it did not. wrong may be
 * NULL.
 */
int settings_parse(const char *text, size_t len, struct view *v, char *theme, size_t theme_size,
		   struct settings_wrong *wrong);
/*
 * The same from a file: how many lines, or -errno where it cannot be read (-ENOENT: there is
 * none).
 */
int settings_read(const char *path, struct view *v, struct settings_wrong *wrong);
/* The theme that the file asks for: "" none. */
void settings_theme(const char *path, char *theme, size_t size);
/*
 * Writes the file (0600, by rename), its folder too. -EPERM: the folder is another user's, as
 * it is under sudo; what else fails as -errno.
 */
int settings_write(const char *path, const struct view *v, const char *theme);
/* $XDG_CONFIG_HOME/kvmtop/kvmtoprc or $HOME/.config/…; false: neither is set. */
bool settings_path(char *out, size_t size);

#endif
