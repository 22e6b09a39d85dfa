// SPDX-License-Identifier: GPL-2.0-only
/* The tables of a report as text, CSV and JSON, and how they differ from perf's. */
#include "report_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "format.h"
#include "kvm_names.h"
#include "out.h"
#include "perfdata.h"
#include "report_recording.h"
#include "report_samples.h"
#include "store_time.h"
#include "text.h"
#include "version.h"

static double share(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

/* ---- text ---- */

static void put_us(struct out *o, uint64_t ns)
{
	out_printf(o, " %11.2f", (double)ns / 1e3);
}

/* A percentile of what no histogram was kept of is not known. */
static void put_percentile(struct out *o, const struct report_line *l, uint64_t ns)
{
	if (l->no_pctl)
		out_printf(o, " %11s", "n/a");
	else
		put_us(o, ns);
}

static void put_line(const struct report_lines *all, const struct report_line *r, struct out *o)
{
	char name[4 * REPORT_NAME];

	text_escape(name, sizeof(name), r->name);
	out_printf(o, "%-20s %10" PRIu64, name, r->timed);
	if (!r->timed) {
		out_printf(o, " %7s %7s %11s %11s %11s %7s %11s %11s %11s %10" PRIu64 "\n", "n/a",
			   "n/a", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a", r->count);
		return;
	}
	out_printf(o, " %7.2f %7.2f", share(r->timed, all->timed), share(r->time_ns, all->time_ns));
	put_us(o, r->min_ns);
	put_us(o, r->max_ns);
	out_printf(o, " %11.2f %7.2f", r->avg_ns / 1e3, r->stderr_pct);
	put_percentile(o, r, r->p50);
	put_percentile(o, r, r->p99);
	put_percentile(o, r, r->p999);
	out_printf(o, " %10" PRIu64 "\n", r->count);
}

/* A kind of which nothing is known is not one with no events. */
static const char *text_unknown(const struct report_view *v, enum kvm_kind kind)
{
	if (v->rec)
		return v->rec->known[kind] ? NULL : "not collected";
	return report_recorded(v->r, kind) ? NULL : "not recorded";
}

static int text_kind(const struct report_view *v, enum kvm_kind kind, const struct report_lines *l,
		     struct out *o)
{
	const char *unknown = l->count || l->timed ? NULL : text_unknown(v, kind);

	if (unknown) {
		out_printf(o, "# %s: %s\n\n", report_kind_title(kind), unknown);
		return 0;
	}
	out_printf(o, "# %s: %" PRIu64 " events", report_kind_title(kind), l->count);
	if ((v->rec ? v->rec->entries : v->r->entries) || l->timed)
		out_printf(o, ", %" PRIu64 " timed, %.2f us altogether\n", l->timed,
			   (double)l->time_ns / 1e3);
	else
		out_text(o, "; without kvm_entry and kvm_exit nothing is timed\n");
	out_printf(o, "%-20s %10s %7s %7s %11s %11s %11s %7s %11s %11s %11s %10s\n", "REASON",
		   "TIMED", "%TIMED", "%TIME", "MIN/us", "MAX/us", "AVG/us", "+-%", "p50/us",
		   "p99/us", "p99.9/us", "COUNT");
	for (size_t i = 0; i < l->n; i++)
		put_line(l, &l->line[i], o);
	out_text(o, "\n");
	return 0;
}

static void text_recording(const struct report_recording *r, struct out *o)
{
	char from[40], to[40];

	store_time_text(from, sizeof(from), r->first);
	store_time_text(to, sizeof(to), r->last);
	out_printf(o, "# %s to %s: %" PRIu64 " intervals, %.4g s\n\n", from, to, r->intervals,
		   (double)r->length / 1e9);
}

int report_put_text(const struct report_view *v, struct out *o)
{
	if (v->rec)
		text_recording(v->rec, o);
	return report_each_kind(v, text_kind, o);
}

/* ---- CSV ---- */

static void csv_times(const struct report_lines *all, const struct report_line *r, struct out *o)
{
	if (!r->timed) {
		out_text(o, ",,,,,,,,,\n");
		return;
	}
	out_printf(o, ",%.4f,%" PRIu64 ",%.4f,%" PRIu64 ",%.3f,%.4f", share(r->timed, all->timed),
		   r->time_ns, share(r->time_ns, all->time_ns), r->min_ns, r->avg_ns,
		   r->stderr_pct);
	if (r->no_pctl)
		out_printf(o, ",,,,%" PRIu64 "\n", r->max_ns);
	else
		out_printf(o, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", r->p50, r->p99,
			   r->p999, r->max_ns);
}

static int csv_kind(const struct report_view *v, enum kvm_kind kind, const struct report_lines *l,
		    struct out *o)
{
	char name[4 * REPORT_NAME];

	(void)v;
	for (size_t i = 0; i < l->n; i++) {
		text_escape_csv(name, sizeof(name), l->line[i].name);
		out_printf(o, "%s,%s,%" PRIu64 ",%.4f,%" PRIu64, report_kind_title(kind), name,
			   l->line[i].count, share(l->line[i].count, l->count), l->line[i].timed);
		csv_times(l, &l->line[i], o);
	}
	return 0;
}

int report_put_csv(const struct report_view *v, struct out *o)
{
	out_text(o, "kind,key,count,count_pct,timed,timed_pct,time_ns,time_pct,min_ns,avg_ns,"
		    "stderr_pct,p50_ns,p99_ns,p999_ns,max_ns\n");
	return report_each_kind(v, csv_kind, o);
}

/* ---- JSON ---- */

void report_json_text(struct out *o, const char *text)
{
	char clean[4096];

	text_utf8_clean(clean, sizeof(clean), text);
	out_text(o, "\"");
	for (const char *c = clean; *c; c++) {
		if (*c == '"' || *c == '\\')
			out_printf(o, "\\%c", *c);
		else if ((unsigned char)*c < 0x20)
			out_printf(o, "\\u%04x", (unsigned char)*c);
		else
			out_bytes(o, c, 1);
	}
	out_text(o, "\"");
}

static void json_times(const struct report_lines *all, const struct report_line *r, struct out *o)
{
	if (!r->timed) {
		out_text(o,
			 ",\"timed_pct\":null,\"time_ns\":null,\"time_pct\":null,\"min_ns\":null,"
			 "\"max_ns\":null,\"avg_ns\":null,\"stderr_pct\":null,\"p50_ns\":null,"
			 "\"p99_ns\":null,\"p999_ns\":null}");
		return;
	}
	out_printf(o,
		   ",\"timed_pct\":%.4f,\"time_ns\":%" PRIu64
		   ",\"time_pct\":%.4f,\"min_ns\":%" PRIu64 ",\"max_ns\":%" PRIu64
		   ",\"avg_ns\":%.3f,\"stderr_pct\":%.4f",
		   share(r->timed, all->timed), r->time_ns, share(r->time_ns, all->time_ns),
		   r->min_ns, r->max_ns, r->avg_ns, r->stderr_pct);
	if (r->no_pctl)
		out_text(o, ",\"p50_ns\":null,\"p99_ns\":null,\"p999_ns\":null}");
	else
		out_printf(o,
			   ",\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64 ",\"p999_ns\":%" PRIu64
			   "}",
			   r->p50, r->p99, r->p999);
}

static int json_kind(const struct report_view *v, enum kvm_kind kind, const struct report_lines *l,
		     struct out *o)
{
	(void)v;
	for (size_t i = 0; i < l->n; i++) {
		const struct report_line *r = &l->line[i];

		out_printf(o, "%s{\"kind\":\"%s\",\"key\":", l->before + i ? "," : "",
			   report_kind_title(kind));
		report_json_text(o, r->name);
		out_printf(o, ",\"count\":%" PRIu64 ",\"count_pct\":%.4f,\"timed\":%" PRIu64,
			   r->count, share(r->count, l->count), r->timed);
		json_times(l, r, o);
	}
	return 0;
}

static void json_time(struct out *o, const char *name, int64_t wall)
{
	char buf[64];

	format_time(buf, sizeof(buf), timespec_of(wall));
	out_printf(o, ",\"%s\":\"%s\"", name, buf);
}

/* Of each kind that was asked for: none of it in 0 s is not known. */
static void json_collected(const struct report_recording *r, struct out *o)
{
	const char *comma = "";

	out_text(o, ",\"collected_seconds\":{");
	for (unsigned k = 0; k < KIND_NR; k++) {
		if (!(r->kinds >> k & 1))
			continue;
		out_printf(o, "%s\"%s\":%.3f", comma, report_kind_title((enum kvm_kind)k),
			   (double)r->known[k] / 1e9);
		comma = ",";
	}
	out_text(o, "}");
}

static void json_recording(const struct report_recording *r, struct out *o)
{
	json_time(o, "from", r->first);
	json_time(o, "to", r->last);
	out_printf(o,
		   ",\"intervals\":%" PRIu64
		   ",\"seconds\":%.3f,\"gap_seconds\":%.3f,\"skipped\":%" PRIu64
		   ",\"damaged\":%" PRIu64 ",\"lost\":%" PRIu64,
		   r->intervals, (double)r->length / 1e9, (double)r->gap / 1e9, r->skipped,
		   r->damaged, r->lost);
	json_collected(r, o);
	out_text(o, ",\"exits\":[");
}

int report_put_json(const struct report_view *v, struct out *o)
{
	int rc;

	out_printf(o, "{\"schema\":1,\"version\":\"%s\",\"file\":", KVMTOP_VERSION);
	report_json_text(o, v->file);
	if (v->rec) {
		json_recording(v->rec, o);
		rc = report_each_kind(v, json_kind, o);
		out_text(o, "]");
		if (v->rec->samples.all)
			report_samples_put_members(&v->rec->samples, o);
		out_text(o, "}\n");
		return rc;
	}
	out_printf(o,
		   ",\"span_ns\":%" PRIu64 ",\"events\":%" PRIu64 ",\"lost\":%" PRIu64
		   ",\"cut\":%s,\"unmatched\":%" PRIu64 ",\"torn\":%" PRIu64 ",\"open\":%" PRIu64
		   ",\"exits\":[",
		   (uint64_t)(v->r->last - v->r->first), v->r->events, perfdata_lost(v->sum),
		   v->sum->cut ? "true" : "false", v->r->unmatched, v->r->torn, v->r->open);
	rc = report_each_kind(v, json_kind, o);
	out_text(o, "]}\n");
	return rc;
}

/* ---- differences ---- */

static const char *const causes[CAUSE_NR] = {
	[CAUSE_FIRST] = "before the thread's first kvm_entry, which perf leaves out",
	[CAUSE_FLAGS] = "flags of the reason, which make another reason of it in perf",
	[CAUSE_VCPU] = "another vCPU in the same thread, which perf takes for the first",
	[CAUSE_LOST] = "events were lost in it, and perf times it all the same",
	[CAUSE_MIXED] = "a write and a read in one exit, which perf takes for one",
	[CAUSE_ARM64] = "on arm64 perf times from an entry to the exit: the guest, not the exit",
	[CAUSE_PAIRED] = "a begin and an end that do not belong together",
};

static void put_difference(const struct report_view *v, const struct report_row *r, struct out *o)
{
	char name[REPORT_NAME], shown[4 * REPORT_NAME];

	if (r->k.cause == CAUSE_FLAGS && r->more < 0) { /* perf's row, which has no name there */
		report_perf_name(v->r, &r->k, name, sizeof(name));
		snprintf(shown, sizeof(shown), "%s(%#" PRIx64 ")", name, r->k.key);
	} else {
		report_name(v->r, &r->k, name, sizeof(name));
		text_escape(shown, sizeof(shown), name);
	}
	out_printf(o, "%s %s %+" PRId64 " %+" PRId64 " ns: %s\n", report_kind_title(r->k.kind),
		   shown, r->more, r->more_ns, causes[r->k.cause]);
}

/* Rows of ours that have another name there. */
static void put_names(const struct report_view *v, struct out *o)
{
	const struct report_table *t = &v->r->figures[KIND_VMEXIT];
	char name[REPORT_NAME], there[REPORT_NAME], shown[4 * REPORT_NAME];

	for (size_t i = 0; i < t->n; i++) {
		if (!t->row[i]->timed)
			continue;
		report_name(v->r, &t->row[i]->k, name, sizeof(name));
		report_perf_name(v->r, &t->row[i]->k, there, sizeof(there));
		if (strcmp(name, there) == 0)
			continue;
		text_escape(shown, sizeof(shown), name);
		out_printf(o, "vmexit %s +0 +0 ns: perf calls it %s\n", shown, there);
	}
}

int report_put_differences(const struct report_view *v, struct out *o)
{
	const struct report_table *t = &v->r->diff;
	size_t n = 0;

	out_text(o, "# differences to perf 6.1: pairs and their time that perf has not (+) or has "
		    "too much (-)\n");
	for (size_t i = 0; i < t->n; i++) {
		if (!t->row[i]->more && !t->row[i]->more_ns)
			continue;
		put_difference(v, t->row[i], o);
		n++;
	}
	put_names(v, o);
	if (v->r->q->nvcpus)
		out_text(o, "# perf shows 0.00us as the minimum of every row of one vCPU\n");
	if (v->sum->lost_records)
		out_printf(o,
			   "# perf counts %" PRIu64 " records of losses, not the %" PRIu64
			   " events that they tell of\n",
			   v->sum->lost_records, perfdata_lost(v->sum));
	if (v->r->arm64)
		out_text(o, "# perf has no table of arm64 but vmexit's\n");
	if (!n)
		out_text(o, "# no pair is counted or timed in another way\n");
	return 0;
}
