// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmtop report: the tables of `perf kvm stat report` from a perf.data file, with percentiles, and
 * how they differ from perf's; and the same tables from a recording of kvmtop's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "options.h"
#include "out.h"
#include "perfdata.h"
#include "report.h"
#include "report_cut.h"
#include "report_out.h"
#include "report_recording.h"
#include "report_samples.h"
#include "store_span.h"
#include "sysroot.h"
#include "text.h"

struct job {
	const struct options *o;
	struct report_query q;
	int *pids, *vcpus;
	struct perfdata *p;
	struct report r;
	bool usage; /* what was asked for cannot be had of this kind of file */
	bool samples; /* a recording of addresses, not of KVM's events */
	struct report_samples s;
	bool recorded; /* a recording of kvmtop's */
	struct store_span span;
	struct report_recording rec;
	char shown[256]; /* the file's name, safe for a terminal */
};

/* "0,3,id:5": checked when the options were parsed. */
static int take_list(const char *text, int **list, size_t *n)
{
	size_t room = 1;

	for (const char *c = text; *c; c++)
		room += *c == ',';
	*list = calloc(room, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	for (*n = 0; *text; text += strcspn(text, ","), text += *text == ',') {
		const char *digits = strncmp(text, "id:", 3) == 0 ? text + 3 : text;

		(*list)[(*n)++] = (int)strtol(digits, NULL, 10);
	}
	return 0;
}

static int make_query(struct job *j)
{
	const struct options *o = j->o;
	int rc = 0;

	j->q = (struct report_query){
		.kinds = o->kinds,
		.figures = !o->perf_compat,
		.as_perf = o->perf_compat || o->explain_perf,
	};
	if (o->pids)
		rc = take_list(o->pids, &j->pids, &j->q.npids);
	if (o->vcpus && !rc)
		rc = take_list(o->vcpus, &j->vcpus, &j->q.nvcpus);
	j->q.pid = j->pids;
	j->q.vcpu = j->vcpus;
	return rc;
}

static int open_file(struct job *j)
{
	const char *file = j->o->input;

	text_escape(j->shown, sizeof(j->shown), strcmp(file, "-") == 0 ? "standard input" : file);
	if (strcmp(file, "-") == 0)
		return perfdata_open_fd(STDIN_FILENO, &j->p);
	return perfdata_open(AT_FDCWD, file, &j->p);
}

static int open_tracing(void)
{
	int fd = open("/sys/kernel/tracing/events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 ? fd
		       : open("/sys/kernel/debug/tracing/events",
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* What perf kvm record wrote: where CPUs were. */
static int read_samples(struct job *j)
{
	struct sysroot *root = NULL;
	int rc;

	if (j->o->sort || j->o->reverse || j->o->vcpus || j->o->explain_perf) {
		fprintf(stderr,
			"kvmtop: %s: samples of where CPUs were, not KVM's events: leave --key, "
			"--reverse, --vcpu and --explain-perf away\n",
			j->shown);
		j->usage = true;
		return -EINVAL;
	}
	j->samples = true;
	rc = report_samples_read(&j->s, &j->q, j->p);
	if (!rc)
		rc = sysroot_open(NULL, &root);
	if (!rc)
		rc = report_samples_name(&j->s, j->p, root, &j->o->guest_files);
	sysroot_close(root);
	if (rc)
		fprintf(stderr, "kvmtop: %s: %s\n", j->shown, perfdata_why(rc));
	return rc;
}

/* 0, or -errno with what was wrong said. */
static int read_file(struct job *j)
{
	int rc, fd;

	if (j->o->by_name) {
		fprintf(stderr,
			"kvmtop: --vm: a file of perf's knows processes only: give -p PID\n");
		j->usage = true;
		return -EINVAL;
	}
	rc = open_file(j);
	if (rc) {
		fprintf(stderr, "kvmtop: %s: %s\n", j->shown, perfdata_why(rc));
		return rc;
	}
	fd = open_tracing();
	rc = report_prepare(&j->r, &j->q, j->p, fd);
	if (fd >= 0)
		close(fd);
	if (!rc && !j->r.nevents && !j->o->perf_compat && report_samples_in(j->p))
		return read_samples(j);
	if (!rc && !j->r.nevents) {
		fprintf(stderr,
			"kvmtop: %s: no events of KVM in it, or no formats of them%s: record with "
			"perf kvm stat record\n",
			j->shown,
			perfdata_sum(j->p)->cut ? " (they stand at the end, which is not there)"
						: "");
		return -ENODATA;
	}
	if (!rc)
		rc = report_read(&j->r, j->p);
	if (rc)
		fprintf(stderr, "kvmtop: %s: %s\n", j->shown, perfdata_why(rc));
	return rc;
}

/* ---- a recording of kvmtop's ---- */

/* What an option asks for that only each event tells. */
static const char *needs_events(const struct options *o)
{
	if (o->perf_compat)
		return "--perf-compat";
	if (o->explain_perf)
		return "--explain-perf";
	return o->guest_files.n ? "--guestkallsyms and its like" : NULL;
}

static int read_recording(struct job *j)
{
	const char *option = needs_events(j->o);
	char err[600] = "";
	int rc;

	text_escape(j->shown, sizeof(j->shown), j->span.path);
	j->recorded = true;
	j->rec = (struct report_recording){.filter = j->o->filter, .kinds = j->q.kinds};
	if (option) {
		fprintf(stderr,
			"kvmtop: %s: %s: for files of perf's, not for a recording: leave it away\n",
			j->shown, option);
		j->usage = true;
		return -EINVAL;
	}
	rc = store_span_open(&j->span, err, sizeof(err));
	if (!rc)
		rc = report_recording_read(&j->rec, &j->span);
	if (rc == -ENOENT && j->span.store && !err[0])
		store_span_say_empty(&j->span, err, sizeof(err));
	if (!rc && !j->rec.matched) {
		rc = -ESRCH;
		snprintf(err, sizeof(err), "%s: no such VM or vCPU in it", j->shown);
	}
	if (rc && err[0])
		fprintf(stderr, "kvmtop: %s\n", err);
	else if (rc)
		fprintf(stderr, "kvmtop: %s: %s\n", j->shown, store_strerror(rc));
	return rc;
}

static void say_not_collected(const struct job *j, const char *kind)
{
	const struct report_recording *r = &j->rec;
	char why[400], mend[400];

	if (!r->why) {
		fprintf(stderr, "kvmtop: %s: %s was not collected: kvmtop record --event %s does\n",
			j->shown, kind, kind);
		return;
	}
	text_escape(why, sizeof(why), r->why);
	text_escape(mend, sizeof(mend), r->mend);
	fprintf(stderr, "kvmtop: %s: %s was not collected: %s%s%s\n", j->shown, kind, why,
		*mend ? ": " : "", mend);
}

/* The recorder kept within --max-overhead. */
static void say_costly(const struct job *j, const char *kind, const char *how_long)
{
	char limit[400];

	text_escape(limit, sizeof(limit), j->rec.limit);
	fprintf(stderr,
		"kvmtop: %s: %s was %s: %s: kvmtop record --max-overhead 10, or 0 for no limit\n",
		j->shown, kind, how_long, limit);
}

/* Kinds that were asked for and not collected, or not all the time. */
static void say_kinds(const struct job *j)
{
	const struct report_recording *r = &j->rec;
	char how_long[80];

	for (unsigned k = 0; k < KIND_NR; k++) {
		const char *kind = report_kind_title((enum kvm_kind)k);

		if (!(r->kinds >> k & 1) || r->known[k] >= r->length)
			continue;
		snprintf(how_long, sizeof(how_long), "not collected");
		if (r->known[k])
			snprintf(how_long, sizeof(how_long), "collected in %.4g s of %.4g s only",
				 (double)r->known[k] / 1e9, (double)r->length / 1e9);
		if (r->costly >> k & 1)
			say_costly(j, kind, how_long);
		else if (!r->known[k])
			say_not_collected(j, kind);
		else
			fprintf(stderr, "kvmtop: %s: %s was %s\n", j->shown, kind, how_long);
	}
}

/* A KVM that fires no kvm_exit has returns to the VMM, and those are another table. */
static void say_other_kind(const struct job *j)
{
	const struct report_recording *r = &j->rec;
	unsigned user = KIND_BIT(KIND_USEREXIT);

	for (size_t i = 0; i < r->n; i++)
		if (r->row[i].kind == KIND_VMEXIT)
			return;
	if (r->kinds & KIND_BIT(KIND_VMEXIT) && !(r->kinds & user) && r->userexits)
		fprintf(stderr, "kvmtop: %s: no vmexit in it; --event userexit has %" PRIu64 "\n",
			j->shown, r->userexits);
}

/* Of a file of perf's: kinds whose events were not among those recorded are not 0 of them. */
static void say_not_recorded(const struct job *j)
{
	char missing[160] = "";
	size_t n = 0;

	if (j->q.kinds == REPORT_KINDS) /* all that there are: nobody expects each */
		return;
	for (unsigned k = 0; k < KIND_HALT; k++) {
		if (!(j->q.kinds >> k & 1) || report_recorded(&j->r, (enum kvm_kind)k))
			continue;
		n += (size_t)snprintf(missing + n, sizeof(missing) - n, "%s%s", n ? ", " : "",
				      report_kind_title((enum kvm_kind)k));
	}
	if (n)
		fprintf(stderr,
			"kvmtop: %s: not recorded: %s: perf record -a -e 'kvm:*' has all kinds\n",
			j->shown, missing);
}

/* Nothing of what was asked for, but of other kinds: which. */
static void say_what_it_has(const struct job *j)
{
	char has[240] = "";
	size_t n = 0;

	for (unsigned k = 0; k < KIND_HALT; k++) {
		if (!j->r.seen[report_event((enum kvm_kind)k)])
			continue;
		if (j->q.kinds >> k & 1)
			return;
		n += (size_t)snprintf(has + n, sizeof(has) - n, "%s%s", n ? "," : "",
				      report_kind_title((enum kvm_kind)k));
	}
	if (n)
		fprintf(stderr, "kvmtop: %s: none of these events in it; of others: --event %s\n",
			j->shown, has);
}

/* There are such events, but none of the processes or vCPUs that were asked for. */
static void say_none_chosen(const struct job *j)
{
	bool seen = false;

	if (!j->q.npids && !j->q.nvcpus)
		return;
	for (unsigned k = 0; k < KIND_HALT; k++) {
		const struct report_table *t = &j->r.figures[k];

		if (!(j->q.kinds >> k & 1))
			continue;
		seen |= j->r.seen[report_event((enum kvm_kind)k)] > 0;
		for (size_t i = 0; i < t->n; i++)
			if (t->row[i]->count || t->row[i]->timed)
				return;
	}
	if (seen)
		fprintf(stderr,
			"kvmtop: %s: these events are there, but none is of what %s%s%s chose\n",
			j->shown, j->q.npids ? "-p" : "", j->q.npids && j->q.nvcpus ? " and " : "",
			j->q.nvcpus ? "--vcpu" : "");
}

static void say_what_was_not_recorded(const struct job *j)
{
	const struct report_recording *r = &j->rec;

	if (r->lost)
		fprintf(stderr,
			"kvmtop: %s: %" PRIu64
			" events were lost while recording: counts are too low by them\n",
			j->shown, r->lost);
	if (r->skipped)
		fprintf(stderr,
			"kvmtop: %s: %" PRIu64 " intervals are missing: writing was too slow\n",
			j->shown, r->skipped);
	if (r->gap)
		fprintf(stderr,
			"kvmtop: %s: nothing was recorded for %.4g s of that time, in %" PRIu64
			" %s\n",
			j->shown, (double)r->gap / 1e9, r->ngaps, r->ngaps == 1 ? "gap" : "gaps");
	if (r->damaged)
		fprintf(stderr, "kvmtop: %s: %" PRIu64 " interval%s could not be read\n", j->shown,
			r->damaged, r->damaged == 1 ? "" : "s");
	say_kinds(j);
	say_other_kind(j);
}

/* What is missing, a line each. */
static void say_what_is_missing(const struct job *j)
{
	const struct perfdata_sum *s;

	if (j->recorded) {
		say_what_was_not_recorded(j);
		return;
	}
	s = perfdata_sum(j->p);
	if (s->cut)
		fprintf(stderr,
			"kvmtop: %s: ends before its end (cut off, or still being written): read "
			"as far as it is whole, %" PRIu64 " records%s\n",
			j->shown, s->records,
			j->r.own_formats ? "; the events' formats are this machine's" : "");
	else if (s->broken)
		fprintf(stderr, "kvmtop: %s: %" PRIu64 " records make no sense and are left out\n",
			j->shown, s->broken);
	if (j->o->perf_compat)
		return;
	if (j->r.arm64 && j->q.nvcpus)
		fprintf(stderr,
			"kvmtop: %s: arm64's events do not say of which vCPU they are: leave "
			"--vcpu "
			"away\n",
			j->shown);
	else if (!j->samples)
		say_none_chosen(j);
	if (!j->samples) {
		say_not_recorded(j);
		say_what_it_has(j);
	}
	if (perfdata_lost(s))
		fprintf(stderr,
			"kvmtop: %s: %" PRIu64 " events were lost while recording; %" PRIu64
			" pairs that overlap a loss are not timed\n",
			j->shown, perfdata_lost(s), j->r.torn);
	if (j->r.undecoded)
		fprintf(stderr, "kvmtop: %s: %" PRIu64 " samples are of other events\n", j->shown,
			j->r.undecoded);
	if (s->unordered)
		fprintf(stderr,
			"kvmtop: %s: %" PRIu64
			" records came after younger ones: pairs of them may be "
			"missing\n",
			j->shown, s->unordered);
	if (s->early)
		fprintf(stderr,
			"kvmtop: %s: without marks of rounds and large: events that stand far from "
			"their place may be out of order\n",
			j->shown);
}

static int put_samples(const struct job *j, struct out *o)
{
	if (j->o->format == FORMAT_CSV)
		report_samples_put_csv(&j->s, o);
	else if (j->o->format == FORMAT_JSON)
		report_samples_put_json(&j->s, j->o->input, o);
	else
		report_samples_put_text(&j->s, o);
	return 0;
}

static int put(const struct job *j, struct out *o)
{
	struct report_view v = {
		.r = &j->r,
		.sum = j->recorded ? NULL : perfdata_sum(j->p),
		.rec = j->recorded ? &j->rec : NULL,
		.file = j->recorded ? j->span.path : j->o->input,
		.of = j->o->pids,
		.reverse = j->o->reverse,
	};
	int rc;

	if (j->samples)
		return put_samples(j, o);
	if (j->o->sort)
		(void)report_sort_find(j->o->sort, &v.sort);
	if (j->o->perf_compat)
		return report_put_as_perf(&v, perfdata_text(j->p, PERFDATA_CPUID),
					  (enum kvm_kind)__builtin_ctz(j->q.kinds), o);
	if (j->o->format == FORMAT_CSV)
		rc = report_put_csv(&v, o);
	else if (j->o->format == FORMAT_JSON)
		rc = report_put_json(&v, o);
	else
		rc = report_put_text(&v, o);
	if (!rc && j->recorded && j->rec.samples.all && j->o->format == FORMAT_TEXT)
		report_samples_put_recorded(&j->rec.samples, o);
	return rc || !j->o->explain_perf ? rc : report_put_differences(&v, o);
}

static int write_report(const struct job *j)
{
	struct out *o = out_new(STDOUT_FILENO, -1, 0);
	int rc = o ? put(j, o) : -ENOMEM;

	if (!rc)
		rc = out_flush(o);
	out_free(o);
	if (rc == -ENOTSUP)
		fprintf(stderr,
			"kvmtop: %s: perf 6.1 makes no table of it: on arm64 it has --event "
			"vmexit only, and elsewhere the recording has to say that its CPU is "
			"Intel's, AMD's or Hygon's\n",
			j->shown);
	else if (rc && rc != -EPIPE)
		fprintf(stderr, "kvmtop: cannot write the tables: %s\n", strerror(-rc));
	return rc == -EPIPE ? 0 : rc;
}

int cmd_report(const struct options *o)
{
	struct job j = {.o = o};
	int rc = make_query(&j);

	report_cut_guard();
	if (rc)
		fprintf(stderr, "kvmtop: report cannot begin: %s\n", strerror(-rc));
	else if (!o->input || strcmp(o->input, "-") != 0)
		rc = store_span_split(o->input, &j.span);
	if (!rc && j.span.path && (!o->input || store_span_is_recording(&j.span)))
		rc = read_recording(&j);
	else if (!rc)
		rc = read_file(&j);
	if (!rc) {
		say_what_is_missing(&j);
		rc = write_report(&j);
	}
	report_samples_free(&j.s);
	report_recording_free(&j.rec);
	store_span_close(&j.span);
	report_free(&j.r);
	perfdata_free(j.p);
	free(j.pids);
	free(j.vcpus);
	if (j.usage)
		return STATUS_USAGE;
	return rc ? STATUS_FAILED : STATUS_OK;
}
