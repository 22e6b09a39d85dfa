// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is the kernel of a recording the one that runs here, as it lies in memory now? Only then its code
 * has the names that /proc/kallsyms gives.
 */
#ifndef KVMTOP_REPORT_HOST_H
#define KVMTOP_REPORT_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perfdata;
struct perfdata_record;
struct symsource;

/* Where the recording's kernel had one of its symbols; zeroed: that is not known. */
struct report_host {
	char symbol[32]; /* "_text" */
	uint64_t at;
};

/* Takes it from any record that tells. */
void report_host_look(struct report_host *h, const struct perfdata_record *r);
/* host: this machine's kernel, loaded. False: with the reason in why. */
bool report_host_is_here(const struct report_host *h, const struct perfdata *p,
			 const struct symsource *host, char *why, size_t size);

#endif
