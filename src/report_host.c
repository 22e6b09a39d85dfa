// SPDX-License-Identifier: GPL-2.0-only
/* Whether a recording's kernel is this machine's (report_host.h). */
#include "report_host.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "perfdata.h"
#include "symbols.h"

/* How perf calls what it says of the kernel's text; one of its symbols follows. */
static const char kernel[] = "[kernel.kallsyms]";

/* A mapping: pid, tid, then where, how long, and for the kernel where that symbol was. */
void report_host_look(struct report_host *h, const struct perfdata_record *r)
{
	const size_t head = sizeof(struct perf_event_header), pgoff = head + 24, name = head + 32;
	const char *text = (const char *)r->bytes + name;
	size_t n = sizeof(kernel) - 1, len;

	if (r->type != PERF_RECORD_MMAP || h->symbol[0] || r->size <= name + n ||
	    memcmp(text, kernel, n) != 0)
		return;
	len = strnlen(text + n, r->size - name - n);
	if (!len || len >= sizeof(h->symbol))
		return;
	memcpy(h->symbol, text + n, len);
	h->at = perfdata_u64(r, pgoff);
}

/* Of several symbols of one address a map has one, so this looks for itself. 0: there is none. */
static uint64_t address_here(const char *symbol)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	uint64_t at = 0, found = 0;
	char line[256], name[128];

	while (f && !found && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 " %*c %127s", &at, name) == 2 &&
		    strcmp(name, symbol) == 0)
			found = at;
	if (f)
		fclose(f);
	return found;
}

static bool differs(const struct perfdata *p, enum perfdata_text which, const char *here)
{
	const char *there = perfdata_text(p, which);

	return !there || strcmp(there, here) != 0;
}

bool report_host_is_here(const struct report_host *h, const struct perfdata *p,
			 const struct symsource *host, char *why, size_t size)
{
	const struct symbols_status *status = symsource_status(host);
	struct utsname u;

	if (uname(&u) || differs(p, PERFDATA_HOST, u.nodename) ||
	    differs(p, PERFDATA_KERNEL, u.release))
		snprintf(why, size, "its kernel's code has no names: recorded on another machine");
	else if (!symsource_map(host))
		snprintf(why, size, "its kernel's code has no names: %s: %s", status->source,
			 status->why);
	else if (!h->symbol[0] || address_here(h->symbol) != h->at)
		snprintf(why, size,
			 "its kernel's code has no names: recorded before this machine booted");
	else
		return true;
	return false;
}
