// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of `perf kvm stat report` as Linux 6.1's perf writes it, to the byte: its widths, its
 * names, its order among equals, its minimum of zero for one vCPU.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvm_names.h"
#include "out.h"
#include "perfdata.h"
#include "report_out.h"

#define NAME_WIDTH 20 /* of its first column; one less is shown of a name */
#define FEW_LOST 0.05 /* not worth a word of its */
#define BUCKETS                                                                                    \
	4096 /* rows that share the low bits of their key stand together, last seen first          \
	      */

/* ---- names ---- */

/* Reasons that came after 6.1, which its table does not have. */
static bool newer(uint32_t isa, uint64_t reason)
{
	static const uint32_t vmx[] = {0x4d, 0x54, 0x55};
	static const uint32_t svm[] = {0x8c, 0x8e, 0xa5, 0xa6, 0xffffffff};
	/* SVC, HVC and SMC of 32 bits, ERET: older, but not in it either. */
	static const uint32_t arm64[] = {KVM_ARM_TRAP | 0x11, KVM_ARM_TRAP | 0x12,
					 KVM_ARM_TRAP | 0x13, KVM_ARM_TRAP | 0x1a};
	const uint32_t *list = isa == ISA_VMX ? vmx : isa == ISA_SVM ? svm : arm64;
	size_t n = isa == ISA_VMX   ? sizeof(vmx) / sizeof(vmx[0])
		   : isa == ISA_SVM ? sizeof(svm) / sizeof(svm[0])
				    : sizeof(arm64) / sizeof(arm64[0]);

	for (size_t i = 0; i < n; i++)
		if (list[i] == reason)
			return true;
	return false;
}

/* A name of the table that perf was built with; false: it has none. */
static bool exit_name(uint32_t isa, uint64_t reason, char *buf, size_t size)
{
	static const uint64_t failed = 0x80000000; /* a flag in the kernel, a name in perf */
	struct kvm_names *builtin;
	char number[32];

	snprintf(buf, size, "UNKNOWN");
	if (isa == ISA_VMX && reason == failed) {
		snprintf(buf, size, "FAILED_VMENTRY");
		return true;
	}
	builtin = newer(isa, reason) || (isa == ISA_VMX && reason > UINT16_MAX) ? NULL
										: kvm_names_new();
	if (!builtin)
		return false;
	kvm_names_key(builtin, KIND_VMEXIT, isa, reason, DIR_NONE, buf, size);
	kvm_names_free(builtin);
	snprintf(number, sizeof(number), "%#" PRIx64, reason);
	if (strcmp(buf, number) != 0)
		return true;
	snprintf(buf, size, "UNKNOWN");
	return false;
}

static bool perf_name(uint32_t isa, const struct report_key *k, char *buf, size_t size)
{
	switch (k->kind) {
	case KIND_VMEXIT:
		return exit_name(isa, k->key, buf, size);
	case KIND_IOPORT:
		snprintf(buf, size, "%#" PRIx64 ":%s", k->key,
			 k->dir == DIR_WRITE ? "POUT" : "PIN");
		return true;
	default:
		snprintf(buf, size, "%#" PRIx64 ":%s", k->key, k->dir == DIR_WRITE ? "W" : "R");
		return true;
	}
}

const char *report_perf_name(const struct report *r, const struct report_key *k, char *buf,
			     size_t size)
{
	(void)r;
	(void)perf_name(k->isa, k, buf, size);
	return buf;
}

/* ---- order ---- */

struct ranked {
	const struct report_row *row;
	size_t seen;
	uint64_t by;
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	uint64_t i = x->row->k.key & (BUCKETS - 1), k = y->row->k.key & (BUCKETS - 1);

	if (x->by != y->by)
		return x->by > y->by ? -1 : 1;
	if (i != k)
		return i < k ? -1 : 1;
	return x->seen > y->seen ? -1 : x->seen < y->seen;
}

/* Its "time" is the mean, without what is behind the point; times that make no sense are the most.
 */
static uint64_t whole_mean(const struct report_row *r)
{
	if (r->mean >= 9e18)
		return UINT64_MAX;
	return r->mean > 0 ? (uint64_t)r->mean : 0;
}

static size_t rank(const struct report_table *t, enum report_sort sort, struct ranked *out)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->row[i]->timed)
			out[n++] = (struct ranked){t->row[i], i,
						   sort == SORT_SAMPLE ? t->row[i]->timed
								       : whole_mean(t->row[i])};
	if (n)
		qsort(out, n, sizeof(*out), by_rank);
	return n;
}

/* ---- the table ---- */

static const char *title_of(enum kvm_kind kind)
{
	switch (kind) {
	case KIND_VMEXIT:
		return "VM-EXIT";
	case KIND_MMIO:
		return "MMIO Access";
	case KIND_IOPORT:
		return "IO Port Access";
	case KIND_MSR:
		return "MSR Access";
	default:
		return NULL;
	}
}

static void put_lost_samples(const struct perfdata_sum *s, struct out *o)
{
	uint64_t all = s->samples + s->lost_samples;
	double share = all ? (double)s->lost_samples / (double)all : 0;

	if (share > FEW_LOST)
		out_printf(o, "Warning:\nProcessed %" PRIu64 " samples and lost %3.2f%%!\n\n", all,
			   share * 100);
}

static void put_head(const struct report_view *v, const char *title, struct out *o)
{
	const struct report_query *q = v->r->q;

	if (v->sum->lost_records)
		out_printf(o,
			   "Warning:\nProcessed %" PRIu64 " events and lost %" PRIu64
			   " chunks!\n\nCheck IO/CPU overload!\n\n",
			   v->sum->records, v->sum->lost_records);
	put_lost_samples(v->sum, o);
	if (v->sum->unordered)
		out_printf(o, "Warning:\n%" PRIu64 " out of order events recorded.\n",
			   v->sum->unordered);
	out_text(o, "\n\nAnalyze events for ");
	if (v->of)
		out_printf(o, "pid(s) %s, ", v->of);
	else
		out_text(o, "all VMs, ");
	if (q->nvcpus)
		out_printf(o, "VCPU %d:\n\n", q->vcpu[0]);
	else
		out_text(o, "all VCPUs:\n\n");
	out_printf(o, "%*s %10s %9s %9s %11s %11s %16s \n\n", NAME_WIDTH, title, "Samples",
		   "Samples%", "Time%", "Min Time", "Max Time", "Avg time");
}

static void put_row(const struct report_view *v, const struct report_row *r, uint32_t isa,
		    uint64_t count, uint64_t time, struct out *o)
{
	/* It never sets the minimum of a vCPU's figures to anything but zero. */
	uint64_t min = v->r->q->nvcpus ? 0 : r->min_ns;
	double n = (double)r->timed;
	char name[NAME_WIDTH];

	if (!perf_name(isa, &r->k, name, sizeof(name)))
		out_printf(o, "unknown kvm exit code:%" PRIu64 " on %s\n",
			   isa == ISA_ARM64 ? r->k.key & ~(uint64_t)KVM_ARM_TRAP : r->k.key,
			   isa == ISA_VMX   ? "VMX"
			   : isa == ISA_SVM ? "SVM"
					    : "arm64");
	out_printf(o, "%*s %10" PRIu64 " %8.2f%% %8.2f%% ", NAME_WIDTH, name, r->timed,
		   n / (double)count * 100, (double)r->time_ns / (double)time * 100);
	out_printf(o, "%9.2fus %9.2fus %9.2fus ( +-%7.2f%% )\n", (double)min / 1000,
		   (double)r->max_ns / 1000, (double)r->time_ns / n / 1000,
		   report_stderr_pct_as_perf(r));
}

static uint32_t isa_of(const struct report *r, const char *cpuid)
{
	if (r->arm64)
		return ISA_ARM64;
	if (!cpuid)
		return ISA_NONE;
	if (strstr(cpuid, "Intel"))
		return ISA_VMX;
	return strstr(cpuid, "AMD") || strstr(cpuid, "Hygon") ? ISA_SVM : ISA_NONE;
}

int report_put_as_perf(const struct report_view *v, const char *cpuid, enum kvm_kind kind,
		       struct out *o)
{
	const struct report_table *t = &v->r->perf[kind];
	const char *title = title_of(kind);
	uint32_t isa = isa_of(v->r, cpuid);
	uint64_t count = 0, time = 0;
	struct ranked *rows;
	size_t n;

	if (!title || isa == ISA_NONE || (isa == ISA_ARM64 && kind != KIND_VMEXIT))
		return -ENOTSUP;
	rows = calloc(t->n + 1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	n = rank(t, v->sort, rows);
	for (size_t i = 0; i < n; i++) {
		count += rows[i].row->timed;
		time += rows[i].row->time_ns;
	}
	put_head(v, title, o);
	for (size_t i = 0; i < n; i++)
		put_row(v, rows[i].row, isa, count, time, o);
	out_printf(o, "\nTotal Samples:%" PRIu64 ", Total events handled time:%.2fus.\n\n", count,
		   (double)time / 1000);
	free(rows);
	return 0;
}
