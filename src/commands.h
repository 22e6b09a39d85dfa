// SPDX-License-Identifier: GPL-2.0-only
/* The visible table of commands: a command is one file cmd_*.c and one row. */
#ifndef KVMTOP_COMMANDS_H
#define KVMTOP_COMMANDS_H

struct options;

enum exit_status {
	STATUS_OK = 0,
	STATUS_FAILED = 1, /* a run-time failure */
	STATUS_USAGE = 2, /* wrong usage */
	STATUS_MATCHED = 3, /* --when matched */
};

struct command {
	const char *word; /* "doctor"; NULL: run without a word */
	const char *what; /* one line for --help and the man page */
	unsigned bit; /* enum command_bit */
	const char *words; /* what it takes beside options, for --help: "NAME -- COMMAND"; NULL:
			      nothing */
	/* Prints, also errors (one line on standard error); returns an enum exit_status. */
	int (*run)(const struct options *o);
};

/* In the order of --help; ends with a row without run. */
extern const struct command commands[];

int cmd_live(const struct options *o); /* the full screen */
int cmd_demo(const struct options *o);
int cmd_batch(const struct options *o);
int cmd_doctor(const struct options *o);
int cmd_record(const struct options *o);
int cmd_replay(const struct options *o);
int cmd_guest_symbols(const struct options *o);
int cmd_report(const struct options *o);
int cmd_merge(const struct options *o);
int cmd_diff(const struct options *o);
int cmd_trace(const struct options *o);
int cmd_bundle(const struct options *o);

#endif
