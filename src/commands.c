// SPDX-License-Identifier: GPL-2.0-only
/* The visible table of commands (commands.h). */
#include <stddef.h>

#include "commands.h"
#include "options.h"

const struct command commands[] = {
	{NULL, "live, full screen", FOR_LIVE, NULL, cmd_live},
	{NULL, "the figures as text, CSV, JSON lines or metrics on standard output", FOR_BATCH,
	 NULL, cmd_batch},
	{"record",
	 "keep every interval in a recording, which a kill or a full disk does not harm; with a "
	 "command: as long as it runs",
	 FOR_RECORD, "[-- COMMAND...]", cmd_record},
	{"replay", "the same screens, or with --batch the same figures, of a recording", FOR_REPLAY,
	 "[FILE]", cmd_replay},
	{"diff",
	 "what grew and what shrank from one recording to another, or between two ranges of one: "
	 "FILE@03:00-03:10; without FILE the default recording's; files that perf recorded too",
	 FOR_DIFF, "A B", cmd_diff},
	{"bundle",
	 "evidence for a colleague in one file: doctor, the host's facts, a recording's range, "
	 "tables, "
	 "findings; says what is in it before it writes",
	 FOR_BUNDLE, "[RECORDING]", cmd_bundle},
	{"demo", "small guests to look at: one busy, one that leaves guest mode often, one starved",
	 FOR_DEMO, NULL, cmd_demo},
	{"doctor",
	 "each source of figures: works, or exactly why not and the command that mends it",
	 FOR_DOCTOR, NULL, cmd_doctor},
	{"guest-symbols",
	 "fetch the symbols of a guest's kernel by a command that runs there, as in: kvmtop "
	 "guest-symbols web01 -- ssh root@web01",
	 FOR_GUEST_SYMBOLS, "NAME -- COMMAND...", cmd_guest_symbols},
	{"report",
	 "the tables of perf kvm stat report from a file that perf recorded, with percentiles, or "
	 "from "
	 "a recording; of "
	 "perf kvm record: domains and symbols",
	 FOR_REPORT, NULL, cmd_report},
	{"merge", "the ftrace texts of a host and of guests in one order, by their TSC", FOR_MERGE,
	 NULL, cmd_merge},
	{"trace",
	 "trace a VM's exits on the host and, by a command that runs there, the guest's side, and "
	 "merge "
	 "them, as in: kvmtop trace web01 -- ssh root@web01",
	 FOR_TRACE, "VM [-- COMMAND...]", cmd_trace},
	{NULL, NULL, 0, NULL, NULL},
};
