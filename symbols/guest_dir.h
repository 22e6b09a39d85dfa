// SPDX-License-Identifier: GPL-2.0-only
/*
 * The folder of one guest's symbols: $XDG_CONFIG_HOME/kvmtop/guests/<name>/, the name
 * percent-encoded. Under sudo it is that of the user who called.
 */
#ifndef KVMTOP_GUEST_DIR_H
#define KVMTOP_GUEST_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct guest_home {
	char path[PATH_MAX]; /* …/kvmtop/guests is below */
	uid_t uid; /* whose it is */
	gid_t gid;
	bool sudo; /* not ours, but the caller's of sudo */
};

/* 0, or -ENOENT where no home is known. Reads the environment and the user database. */
int guest_home_find(struct guest_home *out);

/*
 * A name that is one part of a path, whatever is in it: letters, digits, "_", "-" and (not first)
 * "." stay, other bytes become %XX. -EINVAL for "", -ENAMETOOLONG.
 */
int guest_dir_encode(const char *name, char *out, size_t size);

/*
 * The guest's folder for reading (O_PATH); no link below home is followed. -ENOENT: there is none;
 * -EPERM: it belongs to neither us, nor root, nor the user of home, or everybody may write there.
 */
int guest_dir_open(const struct guest_home *home, const char *name);
/* The same, made (0700) where it is missing. */
int guest_dir_make(const struct guest_home *home, const char *name);
/* What an error of the two means, for messages; static storage. */
const char *guest_dir_error(int rc);
/*
 * The path that guest_dir_open() means, for messages; "" where there is none.
 */
void guest_dir_path(const struct guest_home *home, const char *name, char *out, size_t size);

#endif
