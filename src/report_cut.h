// SPDX-License-Identifier: GPL-2.0-only
/*
 * A perf.data file is mapped under a read lease only (perfdata_stream.c), so nobody can cut it off.
 * Only a writer that waits longer than /proc/sys/fs/lease-break-time, while kvmtop is stopped, gets
 * it all the same, and the next look at what is no longer there is a SIGBUS.
 */
#ifndef KVMTOP_REPORT_CUT_H
#define KVMTOP_REPORT_CUT_H

/* From now on that ends the program with one line and STATUS_FAILED; for commands only. */
void report_cut_guard(void);

#endif
