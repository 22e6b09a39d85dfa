// SPDX-License-Identifier: GPL-2.0-only
/* The option table and its parser (options.h). */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "batch_table.h"
#include "collector.h"
#include "commands.h"
#include "filter.h"
#include "format.h"
#include "options_priv.h"
#include "text.h"
#include "when.h"

/* What shows figures, and what collects them. */
#define EVERY (FOR_LIVE | FOR_BATCH | FOR_DEMO)
#define SHOWS (EVERY | FOR_REPLAY)
#define COLLECTS (EVERY | FOR_RECORD)
#define EVERYWHERE (~0u)

enum {
	OPT_VCPU = 256,
	OPT_FORMAT,
	OPT_TABLE,
	OPT_FIELDS,
	OPT_COLLECTORS,
	OPT_EVENT,
	OPT_TOTALS,
	OPT_WHEN,
	OPT_MAX_OVERHEAD,
	OPT_EVENTS_BY,
	OPT_THREADS_BY,
	OPT_SAMPLE_WITH,
	OPT_HOST,
	OPT_GUEST,
	OPT_SLOW,
	OPT_COLOR,
	OPT_ROOT,
	OPT_GUEST_KALLSYMS,
	OPT_GUEST_MODULES,
	OPT_GUEST_VMLINUX,
	OPT_GUEST_MOUNT,
	OPT_KEEP,
	OPT_MAX_SIZE,
	OPT_AT,
	OPT_ROWS,
	OPT_PERF_COMPAT,
	OPT_EXPLAIN_PERF,
	OPT_ANONYMIZE,
	OPT_PERF,
	OPT_OFFSET,
	OPT_SCALING,
	OPT_MAP,
	OPT_TSC,
	OPT_RECORDING,
	OPT_FOR,
	OPT_COMPLETION,
	OPT_DUMP,
};

bool options_number(const char *text, double least, double most, double *out)
{
	char *end;

	if (!*text || text[strspn(text, "0123456789.")])
		return false;
	errno = 0;
	*out = strtod(text, &end);
	return !errno && !*end && isfinite(*out) && *out >= least && *out <= most;
}

static int parse_batch(struct options *o, const char *arg, char *err, size_t size)
{
	(void)arg;
	(void)err;
	(void)size;
	o->batch = true;
	return 0;
}

static int parse_delay(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];

	if (!options_number(arg, DELAY_LEAST, DELAY_MOST, &o->delay_s))
		return options_bad(err, size, "-d '%s': not an interval: give 0.1 to 3600 seconds",
				   options_shown(arg, buf, sizeof(buf)));
	o->by_delay = true;
	return 0;
}

static int parse_iterations(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];
	double n;

	if (!options_number(arg, 1, 1e15, &n) || n != floor(n))
		return options_bad(err, size, "-n '%s': not a number of intervals: give 1 or more",
				   options_shown(arg, buf, sizeof(buf)));
	o->iterations = (uint64_t)n;
	return 0;
}

static int parse_pid(struct options *o, const char *arg, char *err, size_t size)
{
	o->pids = arg;
	return filter_add_pids(o->filter, arg, err, size);
}

static int parse_vm(struct options *o, const char *arg, char *err, size_t size)
{
	o->by_name = true;
	return filter_add_vm(o->filter, arg, err, size);
}

static int parse_vcpu(struct options *o, const char *arg, char *err, size_t size)
{
	o->vcpus = arg;
	return filter_add_vcpus(o->filter, arg, err, size);
}

static int parse_sort(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	o->sort = arg; /* looked up when the table is known */
	return 0;
}

static int parse_reverse(struct options *o, const char *arg, char *err, size_t size)
{
	(void)arg;
	(void)err;
	(void)size;
	o->reverse = true;
	return 0;
}

static int parse_format(struct options *o, const char *arg, char *err, size_t size)
{
	static const char *const names[] = {"text", "csv", "json", "prometheus"};
	char buf[40];

	for (int i = 0; i < 4; i++) {
		if (strcmp(arg, names[i]) == 0) {
			o->format = (enum output_format)i;
			return 0;
		}
	}
	return options_bad(err, size,
			   "--format '%s': not a format: give text, csv, json or prometheus",
			   options_shown(arg, buf, sizeof(buf)));
}

static int parse_table(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];
	size_t n;

	o->table = batch_table_find(arg);
	if (o->table)
		return 0;
	options_bad(err, size, "--table '%s': not a table: give one of",
		    options_shown(arg, buf, sizeof(buf)));
	for (size_t i = 0; i < batch_ntables; i++) {
		n = strlen(err);
		snprintf(err + n, size - n, "%s %s", i ? "," : "", batch_tables[i].name);
	}
	return -EINVAL;
}

static int parse_fields(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	if (strcmp(arg, "help") == 0)
		o->action = ACTION_FIELDS;
	o->fields = arg; /* looked up when the table is known */
	return 0;
}

static bool collector_exists(const char *name, size_t len)
{
	for (size_t i = 0; collectors[i]; i++)
		if (strlen(collectors[i]->name) == len &&
		    strncmp(collectors[i]->name, name, len) == 0)
			return true;
	return false;
}

static int parse_collectors(struct options *o, const char *arg, char *err, size_t size)
{
	const char *p = arg;
	char buf[40];
	size_t n;

	for (;;) {
		size_t len = strcspn(p, ",");

		if (!collector_exists(p, len))
			break;
		if (!p[len]) {
			o->collectors = arg;
			return 0;
		}
		p += len + 1;
	}
	options_bad(err, size, "--collectors '%s': not a list of collectors: give some of",
		    options_shown(arg, buf, sizeof(buf)));
	for (size_t i = 0; collectors[i]; i++) {
		n = strlen(err);
		snprintf(err + n, size - n, "%s%s", i ? "," : " ", collectors[i]->name);
	}
	return -EINVAL;
}

static int kind_of(const char *name, size_t len)
{
	for (int k = 0; k < KIND_NR; k++)
		if (strlen(field_kind_name((enum kvm_kind)k)) == len &&
		    strncmp(field_kind_name((enum kvm_kind)k), name, len) == 0)
			return k;
	return -1;
}

static int parse_event(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];

	if (strcmp(arg, "all") == 0) {
		o->kinds = KIND_ALL;
		return 0;
	}
	for (const char *p = arg;;) {
		size_t len = strcspn(p, ",");
		int k = kind_of(p, len);

		if (k < 0)
			return options_bad(err, size,
					   "--event '%s': not a list of kinds: give some of "
					   "vmexit,mmio,ioport,"
					   "msr,hypercall,userexit,halt, or all",
					   options_shown(arg, buf, sizeof(buf)));
		o->kinds |= KIND_BIT((unsigned)k);
		if (!p[len])
			return 0;
		p += len + 1;
	}
}

static int parse_totals(struct options *o, const char *arg, char *err, size_t size)
{
	(void)arg;
	(void)err;
	(void)size;
	o->totals = true;
	return 0;
}

static int parse_when(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	o->when_text = arg; /* parsed when the table is known */
	return 0;
}

static int parse_overhead(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];

	if (!options_number(arg, 0, 100, &o->max_overhead_pct))
		return options_bad(
			err, size,
			"--max-overhead '%s': not a share of the host: give 0.1 to 100 percent, "
			"or 0 for no limit",
			options_shown(arg, buf, sizeof(buf)));
	return 0;
}

static int parse_threads_by(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];

	if (strcmp(arg, "auto") != 0 && strcmp(arg, "proc") != 0)
		return options_bad(
			err, size,
			"--threads-by '%s': not a way to read threads: give auto or proc",
			options_shown(arg, buf, sizeof(buf)));
	o->threads_by_proc = strcmp(arg, "proc") == 0;
	return 0;
}

static int parse_events_by(struct options *o, const char *arg, char *err, size_t size)
{
	static const char *const how[] = {
		[EVENTS_AUTO] = "auto", [EVENTS_BPF] = "bpf", [EVENTS_PERF] = "perf"};
	char buf[40];

	for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++)
		if (strcmp(arg, how[i]) == 0) {
			o->events_how = (uint8_t)i;
			return 0;
		}
	return options_bad(err, size,
			   "--events-by '%s': not a source of events: give auto, bpf or perf",
			   options_shown(arg, buf, sizeof(buf)));
}

#define SAMPLE_HZ 997 /* no whole number of milliseconds: nothing that ticks keeps step with it */
#define SAMPLE_HZ_MAX 100000

static int parse_freq(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];
	double hz;

	if (!options_number(arg, 0, SAMPLE_HZ_MAX, &hz) || hz != floor(hz))
		return options_bad(
			err, size,
			"-F '%s': not a rate: give 1 to %d samples a second and CPU, or 0 for none",
			options_shown(arg, buf, sizeof(buf)), SAMPLE_HZ_MAX);
	o->sample_hz = (unsigned)hz;
	return 0;
}

static int parse_sample_with(struct options *o, const char *arg, char *err, size_t size)
{
	static const char *const names[] = {
		[SAMPLE_AUTO] = "auto", [SAMPLE_HW] = "hw", [SAMPLE_CLOCK] = "clock"};
	char buf[40];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(arg, names[i]) == 0) {
			o->sample_with = (uint8_t)i;
			return 0;
		}
	}
	return options_bad(err, size,
			   "--sample-with '%s': no way to sample: give auto, hw or clock",
			   options_shown(arg, buf, sizeof(buf)));
}

static int parse_host(struct options *o, const char *arg, char *err, size_t size)
{
	(void)arg;
	(void)err;
	(void)size;
	o->sample_host = true;
	return 0;
}

static int parse_guest(struct options *o, const char *arg, char *err, size_t size)
{
	(void)arg;
	(void)err;
	(void)size;
	o->sample_guest = true;
	return 0;
}

static int parse_color(struct options *o, const char *arg, char *err, size_t size)
{
	static const char *const words[] = {"auto", "never", "always", "8", "256", "truecolor"};
	char buf[40];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(arg, words[i]) == 0) {
			o->color = arg;
			return 0;
		}
	}
	return options_bad(
		err, size,
		"--color '%s': not a way to colour: give auto, never, always, 8, 256 or truecolor",
		options_shown(arg, buf, sizeof(buf)));
}

static int parse_root(struct options *o, const char *arg, char *err, size_t size)
{
	if (!*arg)
		return options_bad(
			err, size,
			"--root '': no folder: give the one that has the host's proc and sys");
	o->root = arg;
	return 0;
}

static int parse_completion(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];

	if (strcmp(arg, "bash") != 0 && strcmp(arg, "zsh") != 0 && strcmp(arg, "fish") != 0)
		return options_bad(err, size,
				   "--completion '%s': not a shell: give bash, zsh or fish",
				   options_shown(arg, buf, sizeof(buf)));
	o->action = ACTION_COMPLETION;
	o->arg = arg;
	return 0;
}

static int parse_dump(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	o->action = ACTION_DUMP;
	o->arg = arg;
	return 0;
}

static int parse_version(struct options *o, const char *arg, char *err, size_t size)
{
	(void)arg;
	(void)err;
	(void)size;
	o->action = ACTION_VERSION;
	return 0;
}

static int parse_help(struct options *o, const char *arg, char *err, size_t size)
{
	(void)arg;
	(void)err;
	(void)size;
	o->action = ACTION_HELP;
	return 0;
}

/* clang-format off */
const struct option_row option_rows[] = {
	{'b', "batch", NULL, "figures as text, CSV, JSON lines or metrics on standard output", NULL,
	 EVERY | FOR_REPLAY, false, parse_batch},
	{'d', "delay", "SEC", "length of an interval, from 0.1 s on (1)", "0.1 0.5 1 2 5 10", COLLECTS, false, parse_delay},
	{'n', "iterations", "N", "end after N intervals (never)", NULL, SHOWS | FOR_RECORD, false, parse_iterations},
	{'p', "pid", "PID,PID", "only the VMs of these processes", "@pids", SHOWS | FOR_REPORT, false, parse_pid},
	{'M', "vm", "NAME", "only VMs of this name, title, UUID or /regular expression/; may be repeated", NULL, SHOWS | FOR_DIFF | FOR_REPORT,
	 false, parse_vm},
	{OPT_VCPU, "vcpu", "N,N", "only vCPUs of these numbers; id:N is KVM's own id", NULL, SHOWS | FOR_REPORT, false, parse_vcpu},
	{'s', "sort", "COLUMN", "order by this column, by its id or its title (worst first)", "@fields", SHOWS | FOR_REPORT, false,
	 parse_sort},
	{'k', "key", "COLUMN", "the same as --sort", "@fields", SHOWS | FOR_REPORT, false, parse_sort},
	{'r', "reverse", NULL, "turn the order round", NULL, SHOWS | FOR_REPORT, false, parse_reverse},
	{OPT_FORMAT, "format", "FORMAT", "as text, csv, json or, with --batch, prometheus (text)", "text csv json prometheus",
	 FOR_BATCH | FOR_REPLAY | FOR_DEMO | FOR_DOCTOR | FOR_DIFF | FOR_REPORT, false, parse_format},
	{OPT_TABLE, "table", "TABLE", "which rows: @tables (vm in text, cpu in csv, all in json, the usual ones in prometheus)",
	 "@tables", FOR_BATCH | FOR_REPLAY | FOR_DEMO, false, parse_table},
	{OPT_FIELDS, "fields", "LIST", "which figures, by id; help lists them with their definitions", "@fields",
	 FOR_BATCH | FOR_REPLAY | FOR_DEMO, false, parse_fields},
	{OPT_COLLECTORS, "collectors", "LIST", "only these sources; doctor lists them (all)", "@collectors",
	 COLLECTS | FOR_DOCTOR, false, parse_collectors},
	{OPT_EVENT, "event", "KIND,KIND", "which KVM events: vmexit, mmio, ioport, msr, hypercall, userexit, halt or all (vmexit)",
	 "vmexit mmio ioport msr hypercall userexit halt all", COLLECTS | FOR_REPORT, false, parse_event},
	{OPT_TOTALS, "totals", NULL, "counts and times of exits since the start, not of the interval", NULL,
	 SHOWS, false, parse_totals},
	{OPT_WHEN, "when", "EXPR", "only rows for which this holds: 'steal_max_pct>20 and exit_pct>5 for 3'; exit status 3 when there was one",
	 NULL, FOR_BATCH | FOR_REPLAY | FOR_DEMO, false, parse_when},
	{OPT_MAX_OVERHEAD, "max-overhead", "PCT", "give up events that would cost more of the host than this; 0: never (2)",
	 "0 1 2 5 10", COLLECTS, false, parse_overhead},
	{OPT_EVENTS_BY, "events-by", "HOW", "count KVM's events inside the kernel (bpf), or take each of them (perf): auto, bpf or perf (auto: bpf where that works)",
	 "auto bpf perf", COLLECTS | FOR_DOCTOR, false, parse_events_by},
	{OPT_THREADS_BY, "threads-by", "HOW", "read the threads' counters by a BPF program where that works, or always from /proc: auto or proc (auto)",
	 "auto proc", COLLECTS, false, parse_threads_by},
	{'F', "freq", "HZ", "samples for hot symbols, a second and CPU; 0: none (997)", "0 97 997 4999", COLLECTS, false, parse_freq},
	{OPT_SAMPLE_WITH, "sample-with", "EVENT", "sample by hw (hardware cycles), clock (cpu-clock), or auto: hw where no guest can miss the counter (auto)",
	 "auto hw clock", COLLECTS | FOR_DOCTOR, false, parse_sample_with},
	{OPT_HOST, "host", NULL, "sample the host's side only (with --guest: both); diff --host --guest FILE: the two sides of one file", NULL, COLLECTS | FOR_DIFF, false, parse_host},
	{OPT_GUEST, "guest", NULL, "sample the guests' side only (with --host: both)", NULL, COLLECTS | FOR_DIFF, false, parse_guest},
	{OPT_SLOW, "slow", "TIME", "single exits that take longer than this, as 500us or 2ms, in the pane Slow (key x) and in table slow; idle exits are left out",
	 "100us 500us 1ms 5ms", COLLECTS, false, options_parse_slow},
	{OPT_COLOR, "color", "WHEN", "colours: auto, never, always, 8, 256 or truecolor (auto)", "auto never always 8 256 truecolor",
	 FOR_LIVE | FOR_REPLAY | FOR_DEMO, false, parse_color},
	{OPT_ROOT, "root", "DIR", "the host's proc and sys are under DIR (/)", "@files", COLLECTS | FOR_DOCTOR | FOR_MERGE | FOR_BUNDLE, false,
	 parse_root},
	{OPT_GUEST_KALLSYMS, "guestkallsyms", "[NAME=]FILE", "a copy of a guest's /proc/kallsyms; of all guests, or of the one of this name, UUID or pid",
	 "@path", COLLECTS | FOR_REPORT | FOR_DIFF, false, options_parse_guest_kallsyms},
	{OPT_GUEST_MODULES, "guestmodules", "[NAME=]FILE", "a copy of a guest's /proc/modules", "@path", COLLECTS | FOR_REPORT | FOR_DIFF, false,
	 options_parse_guest_modules},
	{OPT_GUEST_VMLINUX, "guestvmlinux", "[NAME=]FILE", "a guest's vmlinux, with symbols", "@path", COLLECTS | FOR_REPORT | FOR_DIFF, false,
	 options_parse_guest_vmlinux},
	{OPT_GUEST_MOUNT, "guestmount", "[NAME=]DIR", "guests' root folders are mounted in DIR, each as its name, UUID or pid",
	 "@files", COLLECTS | FOR_REPORT | FOR_DIFF, false, options_parse_guest_mount},
	{'o', "output", "FILE", "record into FILE (/var/lib/kvmtop/recording.db); trace: the new folder; bundle: a file that is not there yet (kvmtop-bundle-TIME.tar.gz)", "@path",
	 FOR_RECORD | FOR_TRACE | FOR_BUNDLE, false, options_parse_output},
	{OPT_FOR, "for", "SEC", "trace for this long (5)", "1 5 10 60", FOR_TRACE, false, options_parse_for},
	{OPT_KEEP, "keep", "TIERS", "how long intervals of which length are kept, the first as measured: -d, else its length (1s:1h,10s:24h,60s:7d)", NULL, FOR_RECORD, false,
	 options_parse_keep},
	{OPT_MAX_SIZE, "max-size", "SIZE", "the recording grows to no more than this, as 500M or 2G; 1M or more (no limit)", "500M 1G 2G 10G",
	 FOR_RECORD, false, options_parse_max_size},
	{OPT_AT, "at", "TIME", "replay, bundle: from this time, or from one to another: 03:12, 'yesterday 03:12', 2026-11-29T03:12, -2h, 03:00-03:10",
	 NULL, FOR_REPLAY | FOR_BUNDLE, false, options_parse_at},
	{OPT_ANONYMIZE, "anonymize", NULL, "replace names and UUIDs of VMs and names of hosts, the same everywhere; leave command lines out", NULL,
	 FOR_BUNDLE, false, options_parse_anonymize},
	{OPT_PERF, "perf", "SEC", "add what perf kvm stat record sees in this time (nothing)", "10s 30s 60s", FOR_BUNDLE, false, options_parse_perf},
	{OPT_ROWS, "rows", "N", "rows of each part of a comparison; 0: all (20)", "0 10 20 50", FOR_DIFF, false, options_parse_rows},
	{'i', "input", "FILE", "report on this file of perf kvm stat record or perf kvm record, - for standard input; or on a recording, as FILE@03:00-03:10 on a range of it (/var/lib/kvmtop/recording.db)", "@path", FOR_REPORT, false,
	 options_parse_input},
	{OPT_PERF_COMPAT, "perf-compat", NULL, "to the byte what perf kvm stat report of Linux 6.1 prints, its faults included (-k sample or time)",
	 NULL, FOR_REPORT, false, options_parse_perf_compat},
	{OPT_EXPLAIN_PERF, "explain-perf", NULL, "after the tables each difference to perf's, with its cause", NULL, FOR_REPORT, false,
	 options_parse_explain_perf},
	{'H', "host-trace", "FILE", "the host's trace, - for standard input", "@path", FOR_MERGE, false, options_host_trace},
	{'G', "guest-trace", "[NAME=]FILE", "a guest's trace; may be repeated; the next five options behind it are for this guest, before the first for all",
	 "@path", FOR_MERGE, false, options_guest_trace},
	{OPT_OFFSET, "offset", "[vcpuN:]VALUE", "the guest's TSC offset, or that of one vCPU (from kvm_write_tsc_offset in the host's trace)", NULL,
	 FOR_MERGE, false, options_offset},
	{OPT_SCALING, "scaling", "[vcpuN:]RATIO:BITS", "the guest's TSC runs at RATIO / 2^BITS of the host's (1)", NULL, FOR_MERGE, false,
	 options_scaling},
	{OPT_TSC, "tsc", "FILE", "offsets from a trace of kvm_write_tsc_offset, or from lines '[VM] vcpuN OFFSET [RATIO BITS]'", "@path", FOR_MERGE,
	 false, options_tsc},
	{OPT_RECORDING, "recording", "FILE", "offsets of the VM that -G names, and when they changed, from a recording (kvmtop record)", "@path",
	 FOR_MERGE, false, options_recording},
	{OPT_MAP, "map", "THIS=THAT", "merge: the guest's CPU is the vCPU of this id in KVM (the same number); diff: the VM of A is this one of B (by UUID, else name)",
	 NULL, FOR_MERGE | FOR_DIFF, false, options_map},
	{OPT_COMPLETION, "completion", "SHELL", "print the completion script for bash, zsh or fish", "bash zsh fish",
	 EVERYWHERE, false, parse_completion},
	{OPT_DUMP, "dump-tables", "NAME", "print a table: options, commands, fields, tables, collectors, keys", NULL,
	 EVERYWHERE, true, parse_dump},
	{'V', "version", NULL, "print the version", NULL, EVERYWHERE, false, parse_version},
	{'h', "help", NULL, "print this help", NULL, EVERYWHERE, false, parse_help},
};
/* clang-format on */
const size_t option_nrows = sizeof(option_rows) / sizeof(option_rows[0]);

#define NROWS (sizeof(option_rows) / sizeof(option_rows[0]))

static void make_getopt(struct option *longs, char *shorts)
{
	*shorts++ = ':';
	for (size_t i = 0; i < NROWS; i++) {
		const struct option_row *r = &option_rows[i];

		longs[i] = (struct option){.name = r->name,
					   .has_arg = r->arg ? required_argument : no_argument,
					   .val = r->letter};
		if (r->letter > 255)
			continue;
		*shorts++ = (char)r->letter;
		if (r->arg)
			*shorts++ = ':';
	}
	longs[NROWS] = (struct option){0};
	*shorts = '\0';
}

static const struct option_row *row_of(int letter)
{
	for (size_t i = 0; i < NROWS; i++)
		if (option_rows[i].letter == letter)
			return &option_rows[i];
	return NULL;
}

/* What getopt did not like, in words. For a long option that it does not know optopt is 0. */
static int complain(int c, const char *word, char *err, size_t size)
{
	const struct option_row *r = optopt ? row_of(optopt) : NULL;
	char buf[60];

	if (r && c == ':')
		return options_bad(err, size, "--%s: no value: give --%s %s", r->name, r->name,
				   r->arg);
	if (r)
		return options_bad(err, size,
				   "--%s: takes no value: leave away what follows the =", r->name);
	if (optopt)
		return options_bad(err, size, "'-%s': no such option: see kvmtop --help",
				   options_shown((char[]){(char)optopt, '\0'}, buf, sizeof(buf)));
	return options_bad(err, size,
			   "'%s': no such option, or short for several: see kvmtop --help",
			   options_shown(word, buf, sizeof(buf)));
}

static const struct command *command_of(const char *word, bool batch)
{
	unsigned bit = batch ? FOR_BATCH : FOR_LIVE;

	for (const struct command *c = commands; c->run; c++) {
		if (word ? c->word && strcmp(c->word, word) == 0 : !c->word && c->bit == bit)
			return c;
	}
	return NULL;
}

static int find_command(struct options *o, char **words, int n, char *err, size_t size)
{
	char buf[60];

	o->command = command_of(n ? words[0] : NULL, o->batch);
	if (!o->command && n)
		return options_bad(err, size, "'%s': no such command: see kvmtop --help",
				   options_shown(words[0], buf, sizeof(buf)));
	if (!o->command)
		return options_bad(err, size, "this build has no full screen: use kvmtop --batch");
	if (o->command->words) {
		o->words = words + 1;
		o->nwords = n - 1;
	} else if (n > 1) {
		return options_bad(err, size, "'%s': one word too many: %s takes options only",
				   options_shown(words[1], buf, sizeof(buf)), o->command->word);
	}
	return 0;
}

/* An option that the command would ignore is a mistake of the user's. */
static int check_use(const struct options *o, const bool *used, char *err, size_t size)
{
	unsigned bit = o->command->bit;

	/* The demo's guests can be looked at with either, recordings too. */
	if (bit == FOR_DEMO)
		bit = o->batch ? FOR_BATCH : FOR_LIVE;
	for (size_t i = 0; i < NROWS; i++) {
		const struct option_row *r = &option_rows[i];

		if (!used[i])
			continue;
		if (bit == FOR_REPLAY && !o->batch && (r->commands & FOR_BATCH) &&
		    !(r->commands & FOR_LIVE))
			return options_bad(err, size,
					   "--%s: for figures without a screen: add --batch",
					   r->name);
		if (r->commands & bit)
			continue;
		if (bit == FOR_LIVE && (r->commands & FOR_BATCH))
			return options_bad(err, size,
					   "--%s: for figures without a screen: add --batch",
					   r->name);
		if (o->command->word)
			return options_bad(err, size, "--%s: not for kvmtop %s: leave it away",
					   r->name, o->command->word);
		return options_bad(err, size, "--%s: not for %s: leave it away", r->name,
				   bit == FOR_BATCH ? "--batch" : "the full screen");
	}
	return 0;
}

static const struct batch_table *default_table(const struct options *o)
{
	bool both = o->format == FORMAT_CSV || o->format == FORMAT_PROMETHEUS;

	return batch_table_find(o->batch && both ? "cpu" : "vm");
}

static int check_sort(const struct options *o, const struct batch_table *t, char *err, size_t size)
{
	char buf[40];

	/* A table of VMs and their vCPUs is in the order of its VMs. */
	if (!o->sort || field_find(t->first, o->sort))
		return 0;
	/* The full screen has both lists. */
	if (!o->batch && field_find(TABLE_VCPU, o->sort))
		return 0;
	return options_bad(err, size,
			   "-s '%s': table %s has no such column: see kvmtop --fields help",
			   options_shown(o->sort, buf, sizeof(buf)), t->name);
}

/* Metrics are of intervals, and numbers. */
static int check_prometheus(const struct options *o, const struct batch_table *t, char *err,
			    size_t size)
{
	if (o->format != FORMAT_PROMETHEUS)
		return 0;
	if (!o->batch)
		return options_bad(err, size,
				   "--format prometheus: not for kvmtop %s: it is for --batch",
				   o->command->word);
	if (o->totals)
		return options_bad(err, size,
				   "--totals: what prometheus calls _total is since the start, the "
				   "others are of the interval: leave it away");
	return format_prometheus_check(t, o->fields, err, size);
}

/* What can be judged only when the whole command line is known. */
static int check_together(struct options *o, char *err, size_t size)
{
	const struct batch_table *t = o->table ? o->table : default_table(o);
	struct batch_columns columns;
	int rc;

	rc = check_prometheus(o, t, err, size);
	if (rc)
		return rc;
	if (o->command->bit == FOR_REPORT)
		return options_check_report(o, err, size);
	if (o->command->bit == FOR_DOCTOR && o->format == FORMAT_CSV)
		return options_bad(err, size,
				   "--format csv: doctor has no table: give text or json");
	rc = check_sort(o, t, err, size);
	if (rc)
		return rc;
	if (o->fields) {
		/* JSON without --table has VMs and vCPUs, which is what cpu has. */
		if (!o->table && o->format == FORMAT_JSON)
			t = batch_table_find("cpu");
		rc = batch_columns_make(t, o->fields, &columns, err, size);
		batch_columns_free(&columns);
	}
	if (!rc && o->when_text)
		rc = when_parse(o->when_text, o->table ? o->table : default_table(o), &o->when, err,
				size);
	return rc;
}

static int parse_all(int argc, char **argv, struct options *o, bool *used, char *err, size_t size)
{
	struct option longs[NROWS + 1];
	char shorts[2 * NROWS + 2];
	const struct option_row *r;
	int c, rc;

	make_getopt(longs, shorts);
	opterr = 0;
	optind = 0; /* glibc: begin anew, also when this is not the first time */
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		if (c == '?' || c == ':')
			return complain(c, argv[optind - 1], err, size);
		r = row_of(c);
		used[r - option_rows] = true;
		rc = r->parse(o, optarg, err, size);
		if (rc)
			return rc;
		if (o->action == ACTION_HELP)
			o->command = options_helped(argv);
		if (o->action == ACTION_HELP || o->action == ACTION_VERSION)
			return 0;
	}
	return 0;
}

int options_parse(int argc, char **argv, struct options *o, char *err, size_t size)
{
	bool used[NROWS] = {false};
	int rc;

	*o = (struct options){
		.delay_s = 1, .max_overhead_pct = 2, .sample_hz = SAMPLE_HZ, .rows = 20};
	store_keep_parse("1s:1h,10s:24h,60s:7d", &o->keep);
	err[0] = '\0';
	o->filter = filter_new();
	rc = o->filter ? parse_all(argc, argv, o, used, err, size) : -ENOMEM;
	if (!rc && o->action == ACTION_RUN) {
		rc = find_command(o, argv + optind, argc - optind, err, size);
		if (!rc)
			rc = check_use(o, used, err, size);
		if (!rc)
			rc = check_together(o, err, size);
	}
	if (rc && !err[0])
		snprintf(err, size, "%s", strerror(-rc));
	return rc;
}

struct collector_config options_collector(const struct options *o)
{
	return (struct collector_config){
		.delay_s = o->delay_s,
		.threads_by_proc = o->threads_by_proc,
		.events_how = o->events_how,
		.sample_hz = o->sample_hz,
		.sample_with = o->sample_with,
		.sample_host = o->sample_host,
		.sample_guest = o->sample_guest,
	};
}

void options_free(struct options *o)
{
	filter_free(o->filter);
	when_free(o->when);
	for (size_t i = 0; i < o->guest_files.n; i++) {
		free((char *)o->guest_files.option[i].vm);
		free((char *)o->guest_files.option[i].file);
	}
	free((void *)o->guest_files.option);
	o->guest_files = (struct guest_files){0};
	free(o->merge.word);
	o->merge = (struct merge_words){0};
	o->filter = NULL;
	o->when = NULL;
}
