// SPDX-License-Identifier: GPL-2.0-only
/* A side of a comparison (diff.h) out of a file of perf's: its time in slices for intervals. */
#ifndef KVMTOP_REPORT_SIDE_H
#define KVMTOP_REPORT_SIDE_H

#include <stddef.h>

struct diff_side;
struct guest_files;

/*
 * Reads side->path, twice: first how long it is. VMs are processes there, called "comm:pid", and
 * --map knows them by the pid too. Set label, path and part, the rest zero; files: of symbols of
 * guests' kernels. 0 or -errno, perhaps with one line in err; diff_side_free() in any case.
 */
int report_side_read(struct diff_side *side, const struct guest_files *files, char *err,
		     size_t size);

#endif
