// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command line: one option table, from which parsing, --help, the completions and the man
 * page's list are made.
 */
#ifndef KVMTOP_OPTIONS_H
#define KVMTOP_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "collector.h"
#include "store.h"
#include "options_merge.h"
#include "symbols.h"

struct batch_table;
struct filter;
struct when;

/* Who takes an option; a word of the command line (commands.h) or --batch decides. */
enum command_bit {
	FOR_LIVE = 1,
	FOR_BATCH = 2,
	FOR_DOCTOR = 4,
	FOR_DEMO = 8, /* as the live screen, with --batch as batch */
	FOR_GUEST_SYMBOLS = 16,
	FOR_RECORD = 32,
	FOR_REPLAY = 64, /* as the live screen, with --batch as batch */
	FOR_MERGE = 128,
	FOR_DIFF = 256,
	FOR_REPORT = 512,
	FOR_TRACE = 1024,
	FOR_BUNDLE = 2048,
};

enum output_format { FORMAT_TEXT, FORMAT_CSV, FORMAT_JSON, FORMAT_PROMETHEUS };

/* What main() does instead of running the command. */
enum options_action {
	ACTION_RUN,
	ACTION_HELP,
	ACTION_VERSION,
	ACTION_FIELDS, /* --fields help */
	ACTION_COMPLETION, /* the shell's name is in .arg */
	ACTION_DUMP, /* tests: the table whose name is in .arg */
};

#define DELAY_LEAST 0.1
#define DELAY_MOST 3600

struct options {
	enum options_action action;
	const char *arg;
	const struct command *
		command; /* of ACTION_RUN never NULL; of ACTION_HELP the one asked about, or NULL */
	bool batch;
	double delay_s; /* -d, from DELAY_LEAST to DELAY_MOST; 1 by default */
	bool by_delay; /* -d was given */
	uint64_t iterations; /* -n; 0: without end */
	struct filter *filter; /* -p -M --vcpu; never NULL after options_parse() */
	const char *sort; /* -s: id or title of a field, NULL: the default order */
	bool reverse;
	enum output_format format;
	const struct batch_table *table; /* --table, NULL: the format's default */
	const char *fields; /* --fields, NULL: the format's default */
	const char *collectors; /* NULL: all */
	unsigned kinds; /* --event as KIND_BITs, 0: the default */
	bool totals;
	struct when *when; /* NULL: none */
	const char *when_text;
	double max_overhead_pct;
	bool threads_by_proc;
	uint8_t events_how; /* enum events_how */
	unsigned sample_hz; /* -F; 997 by default, 0: no samples */
	uint8_t sample_with; /* enum sample_with */
	bool sample_host, sample_guest; /* both or neither: all domains */
	uint64_t slow_ns; /* --slow, 0: slow exits are not looked for */
	const char *color; /* NULL: auto */
	const char *root; /* NULL: the host */
	struct guest_files guest_files; /* --guestkallsyms and so on */
	const char *output; /* record, bundle: the file, trace: the folder; NULL: the default one */
	double for_s; /* trace: --for; 0: the default */
	struct store_keep keep; /* record: --keep, --max-size */
	bool anonymize; /* bundle: --anonymize */
	int64_t perf_ns; /* bundle: --perf, 0 none */
	unsigned rows; /* diff: --rows, 0 all */
	const char *at; /* replay: --at, NULL: all of it */
	const char *input; /* report: the file; NULL: the default recording */
	bool by_name; /* -M was given */
	const char *pids, *vcpus; /* report: -p, --vcpu as given last; NULL: all */
	bool perf_compat, explain_perf; /* report */
	struct merge_words merge; /* what merge is told, in its order; diff: --map */
	char **words; /* behind the command's word, where it takes some; n of them */
	int nwords;
};

struct option_row {
	int letter; /* 'd', or above 255 where there is none */
	const char *name; /* "delay" */
	const char *arg; /* "SEC", NULL: takes none */
	const char *help; /* what it does, with the default; "@tables": the tables' names */
	const char *values; /* for completions: "auto bpf perf", "@fields", "@files" (folders),
			       "@path", NULL */
	unsigned commands; /* FOR_… */
	bool hidden; /* for tests and packagers */
	/* 0, -ENOMEM, or -EINVAL with one line in err. */
	int (*parse)(struct options *o, const char *arg, char *err, size_t size);
};

extern const struct option_row option_rows[];
extern const size_t option_nrows;

/*
 * Strings of the result point into argv. 0, or -errno with one line in err that says what,
 * why and how to mend it. Call options_free() in any case.
 */
int options_parse(int argc, char **argv, struct options *o, char *err, size_t size);
/* Are the files there that were named? After parsing, before the command is run; as above. */
int options_check_files(const struct options *o, char *err, size_t size);
void options_free(struct options *o);
/* What the collectors are asked for. */
struct collector_config options_collector(const struct options *o);

/* options_text.c: what is made from the table. */
void options_help(FILE *to, const struct command *c); /* NULL: of all */
/* The command that --help is asked about, for that ends the parsing wherever it stands; or NULL. */
const struct command *options_helped(char *const *argv);
void options_fields_help(FILE *to);
/* -EINVAL: no such shell. */
int options_completion(const char *shell, FILE *to);
/* "options", "fields", "metrics", "commands", "tables", "collectors", "keys", "panes": a row a
 * line; -EINVAL else. */
int options_dump(const char *what, FILE *to);

#endif
