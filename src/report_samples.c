// SPDX-License-Identifier: GPL-2.0-only
/* Samples of a recording, counted and named (report_samples.h). */
#include "report_samples.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "perfdata.h"
#include "report.h"
#include "report_priv.h"
#include "symbols.h"

#define GUEST_KERNEL_BIT (UINT64_C(1) << 63) /* 64-bit Linux has its kernel in the upper half */
#define PAGE_MASK (~UINT64_C(0xfff))
#define WAIT_NS (20 * INT64_C(1000000000))
#define EVIDENCE 48

/* ---- counting ---- */

bool report_samples_in(const struct perfdata *p)
{
	for (size_t i = 0; i < perfdata_events(p); i++) {
		const struct perf_event_attr *a = perfdata_attr(p, i);

		/* perf's dummy event is there for other records' sake. */
		if (a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_DUMMY)
			continue;
		if (a->type != PERF_TYPE_TRACEPOINT && a->sample_type & PERF_SAMPLE_IP &&
		    a->sample_period)
			return true;
	}
	return false;
}

static bool same(const struct report_sample *a, const struct report_sample *b)
{
	return a->ip == b->ip && a->pid == b->pid && a->domain == b->domain && a->idle == b->idle &&
	       a->slice == b->slice;
}

static size_t slot_of(const struct report_samples *s, const struct report_sample *k)
{
	uint64_t h =
		(k->ip ^ (uint64_t)(uint32_t)k->pid << 32 ^ k->domain ^ (uint64_t)k->slice << 48) *
		UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(h >> 32) & (s->nslots - 1);

	while (s->slot[i] && !same(&s->row[s->slot[i] - 1], k))
		i = (i + 1) & (s->nslots - 1);
	return i;
}

static int make_room(struct report_samples *s)
{
	size_t n = s->nslots ? s->nslots * 2 : 1024;
	uint32_t *slot;

	if (s->n == s->room) {
		void *more = reallocarray(s->row, n / 2, sizeof(*s->row));

		if (!more)
			return -ENOMEM;
		s->row = more;
		s->room = n / 2;
	}
	if (s->n * 2 < s->nslots)
		return 0;
	slot = calloc(n, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(s->slot);
	s->slot = slot;
	s->nslots = n;
	for (size_t i = 0; i < s->n; i++)
		s->slot[slot_of(s, &s->row[i])] = (uint32_t)i + 1;
	return 0;
}

bool report_samples_domain(const struct perfdata_record *r, uint8_t *domain)
{
	switch (r->misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_KERNEL:
	case PERF_RECORD_MISC_HYPERVISOR:
		*domain = DOMAIN_HOST_KERNEL;
		return true;
	case PERF_RECORD_MISC_USER:
		*domain = DOMAIN_HOST_USER;
		return true;
	case PERF_RECORD_MISC_GUEST_KERNEL:
	case PERF_RECORD_MISC_GUEST_USER: /* the kernel's word is not right about these two */
		*domain = r->ip & GUEST_KERNEL_BIT ? DOMAIN_GUEST_KERNEL : DOMAIN_GUEST_USER;
		return true;
	default:
		return false;
	}
}

static uint16_t slice_of(const struct report_samples *s, int64_t time)
{
	uint64_t n = time > s->slice_from && s->slices
			     ? (uint64_t)(time - s->slice_from) / (uint64_t)s->slice_ns
			     : 0;

	return (uint16_t)(s->slices && n >= s->slices ? s->slices - 1 : n);
}

static int take(void *ctx, const struct perfdata_record *r, void *slot)
{
	struct report_samples *s = ctx;
	struct report_sample k = {.ip = r->ip, .pid = r->pid};
	size_t i;
	int rc;

	(void)slot;
	report_host_look(&s->host, r);
	if (r->type != PERF_RECORD_SAMPLE || r->raw || !report_pid_wanted(s->q, r->pid) ||
	    !report_samples_domain(r, &k.domain))
		return 0;
	k.idle = !r->tid && !DOMAIN_IS_GUEST(k.domain);
	if (k.idle || k.domain == DOMAIN_HOST_USER || (k.domain == DOMAIN_HOST_KERNEL && s->slices))
		k.ip = 0; /* nobody names them */
	k.slice = slice_of(s, r->time);
	rc = make_room(s);
	if (rc)
		return rc;
	i = slot_of(s, &k);
	if (!s->slot[i]) {
		s->row[s->n++] = k;
		s->slot[i] = (uint32_t)s->n;
	}
	s->row[s->slot[i] - 1].n++;
	s->domain[k.domain]++;
	s->all++;
	return 0;
}

static int give(void *ctx, int64_t time, const void *slot)
{
	(void)ctx;
	(void)time;
	(void)slot;
	return 0;
}

int report_samples_read(struct report_samples *s, const struct report_query *q, struct perfdata *p)
{
	struct perfdata_reader reader = {0, false, take, give, s};

	s->q = q;
	return perfdata_run(p, &reader);
}

/* ---- naming ---- */

/* Until the source knows what it is, or the time is over. */
static void wait_for(struct report_samples *s, const struct symsource *src)
{
	int64_t end = clock_mono_ns() + WAIT_NS;

	while (symsource_status(src)->state == SYMBOLS_LOADING && clock_mono_ns() < end) {
		struct pollfd p = {.fd = symbols_fd(s->symbols), .events = POLLIN};

		(void)poll(&p, 1, 200);
		(void)symbols_poll(s->symbols);
	}
}

static void show_evidence(struct symsource *src, const struct report_sample *r, size_t n)
{
	struct symbols_evidence e[EVIDENCE];
	size_t found = 0;

	for (size_t i = 0; i < n && found < EVIDENCE; i++)
		if (r[i].domain == DOMAIN_GUEST_KERNEL)
			e[found++] = (struct symbols_evidence){r[i].ip, EVIDENCE_SAMPLE};
	if (found)
		(void)symsource_evidence(src, e, found);
}

/* All addresses of one process: of a guest whose name is the process's number. */
static int name_guest(struct report_samples *s, struct report_sample *r, size_t n)
{
	struct symbols_status status;
	struct symsource *src;
	char name[16];

	snprintf(name, sizeof(name), "%d", r->pid);
	/* No process of this machine: that may be another by now, or another machine. */
	src = symbols_guest(s->symbols, &(struct guest_vm){.name = name});
	if (!src)
		return -ENOMEM;
	wait_for(s, src);
	show_evidence(src, r, n);
	for (size_t i = 0; i < n; i++) {
		struct symbol sym;

		if (r[i].domain == DOMAIN_GUEST_KERNEL && symsource_lookup(src, r[i].ip, &sym)) {
			r[i].name = sym.name;
			r[i].module = sym.module;
		}
	}
	status = *symsource_status(src);
	if (status.state != SYMBOLS_OK && !s->why[0])
		snprintf(s->why, sizeof(s->why), "guest %s: %s%s%s", name, status.source,
			 status.source[0] ? ": " : "",
			 status.state == SYMBOLS_LOADING ? "its symbols took too long to read"
							 : status.why);
	return 0; /* the source stays open: its names are in use */
}

static int by_pid(const void *a, const void *b)
{
	const struct report_sample *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->n > y->n ? -1 : x->n < y->n;
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* What is one row. */
static int by_row(const void *a, const void *b)
{
	const struct report_sample *x = a, *y = b;
	int rc = (x->domain > y->domain) - (x->domain < y->domain);

	if (!rc)
		rc = x->idle - y->idle;
	if (!rc)
		rc = compare_text(x->name, y->name);
	if (!rc)
		rc = compare_text(x->module, y->module);
	return rc ? rc : (x->ip > y->ip) - (x->ip < y->ip);
}

static int by_samples(const void *a, const void *b)
{
	const struct report_sample *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	return by_row(a, b);
}

static void make_rows(struct report_samples *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++)
		s->row[i].ip = s->row[i].name || !DOMAIN_IS_GUEST(s->row[i].domain)
				       ? 0
				       : s->row[i].ip & PAGE_MASK;
	qsort(s->row, s->n, sizeof(*s->row), by_row);
	for (size_t i = 0; i < s->n; i++) {
		if (n && !by_row(&s->row[n - 1], &s->row[i]))
			s->row[n - 1].n += s->row[i].n;
		else
			s->row[n++] = s->row[i];
	}
	s->n = n;
	qsort(s->row, n, sizeof(*s->row), by_samples);
}

static bool has_guest(const struct report_sample *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (r[i].domain == DOMAIN_GUEST_KERNEL)
			return true;
	return false;
}

/* The source stays open, as above. */
static int name_host(struct report_samples *s, const struct perfdata *p)
{
	struct symsource *src = symbols_host(s->symbols);
	struct symbol sym;

	if (!src)
		return -ENOMEM;
	wait_for(s, src);
	if (!report_host_is_here(&s->host, p, src, s->host_why, sizeof(s->host_why)))
		return 0;
	for (size_t i = 0; i < s->n; i++) {
		struct report_sample *r = &s->row[i];

		if (r->domain == DOMAIN_HOST_KERNEL && r->ip &&
		    symsource_lookup(src, r->ip, &sym)) {
			r->name = sym.name;
			r->module = sym.module;
		}
	}
	return 0;
}

int report_samples_name(struct report_samples *s, const struct perfdata *p,
			const struct sysroot *root, const struct guest_files *files)
{
	int rc = s->n ? symbols_new(root, files, &s->symbols) : 0;

	if (rc || !s->n)
		return rc;
	if (!s->slices && s->domain[DOMAIN_HOST_KERNEL])
		rc = name_host(s, p);
	qsort(s->row, s->n, sizeof(*s->row), by_pid);
	for (size_t i = 0, n; i < s->n && !rc; i += n) {
		for (n = 1; i + n < s->n && s->row[i + n].pid == s->row[i].pid; n++)
			;
		if (has_guest(&s->row[i], n))
			rc = name_guest(s, &s->row[i], n);
	}
	if (!s->slices)
		make_rows(s);
	return rc;
}

void report_samples_free(struct report_samples *s)
{
	symbols_free(s->symbols);
	free(s->row);
	free(s->slot);
}
