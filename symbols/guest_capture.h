// SPDX-License-Identifier: GPL-2.0-only
/*
 * What `cat /proc/kallsyms /proc/modules /sys/kernel/notes /proc/sys/kernel/random/boot_id` printed
 * in a guest: taken apart again, judged, and kept in the guest's folder. One command, so that
 * whoever must type a password for it types it once.
 */
#ifndef KVMTOP_GUEST_CAPTURE_H
#define KVMTOP_GUEST_CAPTURE_H

#include "kallsyms.h"
#include "notes.h"

#define GUEST_BOOT_ID 36 /* "f1b2c3d4-…" */

/* Parts of the output; they point into it. */
struct guest_capture {
	const char *kallsyms, *modules, *notes;
	size_t kallsyms_len, modules_len, notes_len;
	size_t nmodules;
	struct kallsyms_facts facts;
	struct build_id id; /* len 0: the notes have none */
	char boot_id[GUEST_BOOT_ID + 1]; /* "": it did not come */
};

/*
 * Any bytes; carriage returns of a terminal in between are dropped, so data is changed. 0; -EACCES:
 * addresses are hidden; -EBADMSG: no kallsyms; -ENOMEM. Parts are set in any case.
 */
int guest_capture_split(char *data, size_t len, struct guest_capture *out);

/*
 * Writes the parts into the folder dir (guest_dir_make()): each complete or not at all, kallsyms
 * last; files of an earlier capture that this one has no part for are removed. 0 or -errno.
 */
int guest_capture_keep(const struct guest_capture *c, int dir);

#endif
