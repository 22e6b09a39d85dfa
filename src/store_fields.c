// SPDX-License-Identifier: GPL-2.0-only
/* The table of what is recorded (store_fields.h). */
#include "store_fields.h"

#include "store_rules.h"

#define SIZE(s, m) ((uint8_t)sizeof(((s *)NULL)->m))
#define AT(s, m) ((uint16_t)offsetof(s, m))

#define ONE(id, type, s, m)                                                                        \
	{                                                                                          \
		(id), STORE_##type, 1, SIZE(s, m), AT(s, m), 0, NULL, 0                            \
	}
/* A number that is an index into something: larger ones are damage. */
#define ENUM(id, type, s, m, most)                                                                 \
	{                                                                                          \
		(id), STORE_##type, 1, SIZE(s, m), AT(s, m), (most), NULL, 0                       \
	}
/* What follows from others. */
#define RULE(id, type, s, m, rule)                                                                 \
	{                                                                                          \
		(id), STORE_##type, 1, SIZE(s, m), AT(s, m), 0, NULL, (rule)                       \
	}
/* m is a member's name, which no parentheses may be around. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define MANY(id, type, s, m, n, rule)                                                              \
	{                                                                                          \
		(id), STORE_##type, (n), SIZE(s, m[0]), AT(s, m), 0, NULL, (rule)                  \
	}
/* NOLINTEND(bugprone-macro-parentheses) */
#define PART(id, s, m, part)                                                                       \
	{                                                                                          \
		(id), STORE_PART, 1, 0, AT(s, m), 0, (part), 0                                     \
	}
#define END                                                                                        \
	{                                                                                          \
		0, 0, 0, 0, 0, 0, NULL, 0                                                          \
	}

#define USE(usr_rule, steal_rule, throt_rule, wait_rule, demand_rule)                              \
	{                                                                                          \
		ONE(1, VALUE, struct snap_use, cpu), ONE(2, VALUE, struct snap_use, guest),        \
			RULE(3, VALUE, struct snap_use, usr, usr_rule),                            \
			ONE(4, VALUE, struct snap_use, sys),                                       \
			RULE(5, VALUE, struct snap_use, steal, steal_rule),                        \
			RULE(6, VALUE, struct snap_use, throt, throt_rule),                        \
			RULE(7, VALUE, struct snap_use, wait, wait_rule),                          \
			RULE(8, VALUE, struct snap_use, demand, demand_rule),                      \
			ONE(9, VALUE, struct snap_use, csw), ONE(10, VALUE, struct snap_use, mig), \
			ONE(11, VALUE, struct snap_use, majflt),                                   \
			ONE(12, VALUE, struct snap_use, blk),                                      \
			ENUM(13, U8, struct snap_use, own_quota, 1), END,                          \
	}

/* Of a thread, and of a VM: sums and means over its threads. */
static const struct store_field use_fields[] = USE(RULE_USR, 0, 0, RULE_WAIT, RULE_DEMAND);
static const struct store_field vm_use_fields[] =
	USE(RULE_USR, RULE_VM_STEAL, RULE_VM_THROT, RULE_VM_WAIT, RULE_VM_DEMAND);

#define TALLY(rate_rule, count_rule, time_rule)                                                    \
	{                                                                                          \
		ONE(1, U64, struct tally, count), RULE(2, U64, struct tally, timed, RULE_TIMED),   \
			ONE(3, U64, struct tally, time_ns),                                        \
			RULE(4, U64, struct tally, min_ns, RULE_ONE),                              \
			RULE(5, U64, struct tally, max_ns, RULE_ONE),                              \
			RULE(6, NUMBER, struct tally, avg_ns, RULE_MEAN),                          \
			ONE(7, NUMBER, struct tally, stderr_pct),                                  \
			RULE(8, U64, struct tally, p50_ns, RULE_P50),                              \
			RULE(9, U64, struct tally, p99_ns, RULE_P99),                              \
			RULE(10, U64, struct tally, p999_ns, RULE_P999),                           \
			ENUM(11, U8, struct tally, pctl, PCTL_NONE),                               \
			ENUM(12, U8, struct tally, low, WHY_NR - 1),                               \
			RULE(13, VALUE, struct tally, rate, rate_rule),                            \
			RULE(14, VALUE, struct tally, count_pct, count_rule),                      \
			RULE(15, VALUE, struct tally, time_pct, time_rule), END,                   \
	}

/* Of rows of exits, of the interval and since the start; and of all of a kind. */
static const struct store_field now_fields[] = TALLY(RULE_RATE, RULE_COUNT_PCT, RULE_TIME_PCT);
static const struct store_field total_fields[] =
	TALLY(RULE_RATE_TOTAL, RULE_COUNT_PCT_TOTAL, RULE_TIME_PCT_TOTAL);
static const struct store_field kind_fields[] = TALLY(RULE_RATE, 0, 0);
static const struct store_field kind_total_fields[] = TALLY(RULE_RATE_TOTAL, 0, 0);

static const struct store_field exits_fields[] = {
	RULE(1, VALUE, struct snap_exits, rate, RULE_EXIT_RATE),
	ONE(2, VALUE, struct snap_exits, pct),
	RULE(3, VALUE, struct snap_exits, p50, RULE_EXIT_STEP),
	RULE(4, VALUE, struct snap_exits, p99, RULE_EXIT_STEP),
	RULE(5, VALUE, struct snap_exits, max, RULE_EXIT_MAX),
	ONE(6, TEXT, struct snap_exits, top),
	RULE(7, VALUE, struct snap_exits, top_pct, RULE_EXIT_TOP),
	ONE(8, U64, struct snap_exits, lost),
	ONE(9, TEXT, struct snap_exits, open),
	ONE(10, VALUE, struct snap_exits, open_ns),
	ONE(11, U32, struct snap_exits, first),
	ONE(12, U32, struct snap_exits, n),
	RULE(13, VALUE, struct snap_exits, on_pct, RULE_EXIT_ON),
	ONE(14, VALUE, struct snap_exits, off_pct),
	END,
};

static const struct store_field samples_fields[] = {
	ONE(1, VALUE, struct snap_samples, n),
	ONE(2, VALUE, struct snap_samples, n_total),
	MANY(3, VALUE, struct snap_samples, domain, DOMAIN_NR, RULE_SAMPLES),
	ONE(4, TEXT, struct snap_samples, hot),
	RULE(5, VALUE, struct snap_samples, hot_pct, RULE_SAMPLES),
	ENUM(6, U8, struct snap_samples, hot_named, 1),
	ONE(7, U32, struct snap_samples, first),
	ONE(8, U32, struct snap_samples, rows),
	END,
};

static const struct store_field slows_fields[] = {
	ONE(1, U64, struct snap_slows, count),
	ONE(2, U64, struct snap_slows, total),
	ONE(3, U32, struct snap_slows, first),
	ONE(4, U32, struct snap_slows, n),
	END,
};

static const struct store_field pmu_fields[] = {
	ONE(1, VALUE, struct snap_pmu, accesses), ONE(2, VALUE, struct snap_pmu, pct),
	ONE(3, TEXT, struct snap_pmu, source),	  ONE(4, TEXT, struct snap_pmu, what),
	ONE(5, TEXT, struct snap_pmu, global),	  ONE(6, U32, struct snap_pmu, first),
	ONE(7, U32, struct snap_pmu, n),	  ONE(8, VALUE, struct snap_pmu, total),
	ONE(9, VALUE, struct snap_pmu, refused),  END,
};

static const struct store_field interval_fields[] = {
	ONE(1, U64, struct snapshot, seq),
	ONE(2, I64, struct snapshot, time),
	ONE(3, I64, struct snapshot, dt),
	ONE(4, I64, struct snapshot, wall.tv_sec),
	ONE(5, I64, struct snapshot, wall.tv_nsec),
	ENUM(6, U8, struct snapshot, first_rates, 1),
	ONE(7, NUMBER, struct snapshot, delay_s),
	ENUM(8, U32, struct snapshot, open_kinds, KIND_ALL),
	ONE(9, U64, struct snapshot, slow_ns),
	ONE(10, I64, struct snapshot, since),
	END,
};

static const struct store_field sampling_fields[] = {
	ENUM(1, U8, struct snap_sampling, open, 1),
	ONE(2, TEXT, struct snap_sampling, event),
	ONE(3, U32, struct snap_sampling, hz),
	ONE(4, U32, struct snap_sampling, wanted_hz),
	ONE(5, TEXT, struct snap_sampling, why),
	ONE(6, U64, struct snap_sampling, lost),
	ONE(7, U64, struct snap_sampling, throttled),
	ONE(8, VALUE, struct snap_sampling, idle),
	ENUM(9, U8, struct snap_sampling, no_guest, 1),
	END,
};

static const struct store_field host_fields[] = {
	ONE(1, TEXT, struct snap_host, node),
	ONE(2, TEXT, struct snap_host, kernel),
	ONE(3, TEXT, struct snap_host, boot_id),
	ONE(4, U32, struct snap_host, ncpu),
	ONE(5, U32, struct snap_host, nvm),
	ONE(6, U32, struct snap_host, nvcpu),
	ONE(7, VALUE, struct snap_host, usr),
	ONE(8, VALUE, struct snap_host, sys),
	ONE(9, VALUE, struct snap_host, irq),
	ONE(10, VALUE, struct snap_host, wa),
	ONE(11, VALUE, struct snap_host, st),
	ONE(12, VALUE, struct snap_host, guest),
	ONE(13, VALUE, struct snap_host, idle),
	ONE(14, VALUE, struct snap_host, steal),
	ONE(15, VALUE, struct snap_host, overcommit),
	ONE(16, VALUE, struct snap_host, exits_rate),
	ONE(17, VALUE, struct snap_host, exit_pct),
	PART(18, struct snap_host, ex, exits_fields),
	ONE(19, VALUE, struct snap_host, other_cpu),
	ONE(20, VALUE, struct snap_host, other_sys),
	ONE(21, LINE, struct snap_host, other_why),
	PART(22, struct snap_host, sym, samples_fields),
	PART(23, struct snap_host, other_sym, samples_fields),
	ONE(24, VALUE, struct snap_host, self_cpu),
	ONE(25, VALUE, struct snap_host, self_guest),
	ONE(26, VALUE, struct snap_host, load1),
	ONE(27, U64, struct snap_host, mem_total_kb),
	ONE(28, U64, struct snap_host, mem_avail_kb),
	ONE(29, U64, struct snap_host, lost),
	ONE(30, U64, struct snap_host, late),
	ONE(31, U64, struct snap_host, unmatched),
	ONE(32, U64, struct snap_host, lost_total),
	ONE(33, U32, struct snap_host, unwatched),
	ONE(34, I32, struct snap_host, unwatched_cpu),
	ONE(35, I64, struct snap_host, unwatched_ns),
	ENUM(36, U8, struct snap_host, entry_exit, 1),
	ENUM(37, U8, struct snap_host, root, 1),
	ONE(38, U32, struct snap_host, discovering),
	ONE(39, U32, struct snap_host, discovered),
	ENUM(40, U8, struct snap_host, events_by, EVENTS_BY_BPF),
	ONE(41, U64, struct snap_host, switches),
	ONE(42, TEXT, struct snap_host, pmu_why),
	ONE(43, U64, struct snap_host, exit_off_ns),
	ONE(44, U64, struct snap_host, waits_ns),
	ONE(45, U64, struct snap_host, counting_ns),
	ONE(46, U64, struct snap_host, code_lost),
	ONE(47, U64, struct snap_host, code_lost_total),
	ONE(48, U64, struct snap_host, singles),
	END,
};

static const struct store_field waits_fields[] = {
	ONE(1, VALUE, struct snap_waits, pct),
	ONE(2, VALUE, struct snap_waits, wakeups),
	ONE(3, VALUE, struct snap_waits, wake_p50),
	ONE(4, VALUE, struct snap_waits, wake_p99),
	ONE(5, U32, struct snap_waits, first),
	ONE(6, U32, struct snap_waits, n),
	END,
};

static const struct store_field vm_fields[] = {
	ONE(1, U32, struct snap_vm, id),
	ONE(2, TEXT, struct snap_vm, vm_id),
	ONE(3, TEXT, struct snap_vm, name),
	ONE(4, TEXT, struct snap_vm, uuid),
	ONE(5, TEXT, struct snap_vm, title),
	ONE(6, TEXT, struct snap_vm, vmm),
	ONE(7, TEXT, struct snap_vm, cmdline),
	ONE(8, TEXT, struct snap_vm, cgroup),
	ONE(9, U8, struct snap_vm, quality),
	ONE(10, I32, struct snap_vm, pid),
	ONE(11, U32, struct snap_vm, nvcpu),
	ONE(12, U32, struct snap_vm, nthread),
	PART(13, struct snap_vm, use, vm_use_fields),
	RULE(14, VALUE, struct snap_vm, vcpu_pct, RULE_VM_VCPU),
	RULE(15, VALUE, struct snap_vm, io_pct, RULE_VM_IO),
	RULE(16, VALUE, struct snap_vm, steal_max, RULE_VM_STEAL_MAX),
	ONE(17, I32, struct snap_vm, steal_max_vcpu),
	ONE(18, TEXT, struct snap_vm, steal_source),
	PART(19, struct snap_vm, ex, exits_fields),
	PART(20, struct snap_vm, sym, samples_fields),
	ONE(21, TEXT, struct snap_vm, sym_why),
	ONE(22, TEXT, struct snap_vm, sym_mend),
	ENUM(23, U32, struct snap_vm, why, WHY_ROW_SYMBOL),
	ONE(24, LINE, struct snap_vm, why_text),
	ONE(25, U64, struct snap_vm, quota_us),
	ONE(26, U64, struct snap_vm, period_us),
	ONE(27, U32, struct snap_vm, vcpu_first),
	ONE(28, U32, struct snap_vm, vcpu_n),
	ONE(29, U32, struct snap_vm, thread_first),
	ONE(30, U32, struct snap_vm, thread_n),
	ONE(31, U32, struct snap_vm, code_first),
	ONE(32, U32, struct snap_vm, code_n),
	PART(33, struct snap_vm, waits, waits_fields),
	PART(34, struct snap_vm, slow, slows_fields),
	PART(35, struct snap_vm, pmu, pmu_fields),
	ONE(36, TEXT, struct snap_vm, quota_file),
	ONE(37, NUMBER, struct snap_vm, quota_held_pct),
	ENUM(38, U8, struct snap_vm, quota_shared, 1),
	ENUM(39, U8, struct snap_vm, code_known, 1),
	END,
};

static const struct store_field tsc_fields[] = {
	ONE(1, TEXT, struct snap_tsc, offset),	 ONE(2, VALUE, struct snap_tsc, offset_s),
	ONE(3, VALUE, struct snap_tsc, scale),	 ONE(4, VALUE, struct snap_tsc, apart_ns),
	ONE(5, VALUE, struct snap_tsc, changes), END,
};

static const struct store_field vcpu_fields[] = {
	ONE(1, U32, struct snap_vcpu, id),
	ONE(2, U32, struct snap_vcpu, vm),
	ONE(3, I32, struct snap_vcpu, index),
	ONE(4, I32, struct snap_vcpu, kvm_id),
	ENUM(5, U8, struct snap_vcpu, index_guessed, 1),
	ONE(6, U8, struct snap_vcpu, quality),
	ONE(7, I32, struct snap_vcpu, tid),
	ONE(8, TEXT, struct snap_vcpu, comm),
	ONE(9, U8, struct snap_vcpu, state),
	ONE(10, I32, struct snap_vcpu, cpu),
	ONE(11, TEXT, struct snap_vcpu, pin),
	ONE(12, TEXT, struct snap_vcpu, node),
	PART(13, struct snap_vcpu, use, use_fields),
	PART(14, struct snap_vcpu, ex, exits_fields),
	PART(15, struct snap_vcpu, sym, samples_fields),
	PART(16, struct snap_vcpu, tsc, tsc_fields),
	PART(17, struct snap_vcpu, waits, waits_fields),
	PART(18, struct snap_vcpu, pmu, pmu_fields),
	END,
};

static const struct store_field exit_fields[] = {
	ONE(1, U32, struct snap_exit, vm),
	ONE(2, I32, struct snap_exit, vcpu),
	ENUM(3, U8, struct snap_exit, kind, KIND_NR - 1),
	ENUM(4, U8, struct snap_exit, idle, 1),
	ENUM(5, U8, struct snap_exit, other, 1),
	ENUM(6, U8, struct snap_exit, has_time, 1),
	ONE(7, U32, struct snap_exit, isa),
	ONE(8, U64, struct snap_exit, key),
	ENUM(9, U8, struct snap_exit, dir, DIR_UNSATISFIED),
	ONE(10, TEXT, struct snap_exit, name),
	ONE(11, TEXT, struct snap_exit, note),
	PART(12, struct snap_exit, now, now_fields),
	PART(13, struct snap_exit, total, total_fields),
	ONE(14, HEAT, struct snap_exit, heat),
	END,
};

static const struct store_field symbol_key_fields[] = {
	ONE(1, U64, struct symbol_key, value),
	ONE(2, U32, struct symbol_key, table),
	ENUM(3, U8, struct symbol_key, domain, DOMAIN_NR - 1),
	ENUM(4, U8, struct symbol_key, reason, SYM_NO_FILE),
	END,
};

static const struct store_field caller_fields[] = {
	ONE(1, TEXT, struct snap_caller, name),
	ONE(2, U64, struct snap_caller, samples),
	ONE(3, U64, struct snap_caller, samples_total),
	END,
};

static const struct store_field symbol_fields[] = {
	ONE(1, I32, struct snap_symbol, vm),
	ONE(2, I32, struct snap_symbol, vcpu),
	PART(3, struct snap_symbol, key, symbol_key_fields),
	ENUM(4, U8, struct snap_symbol, other, 1),
	ENUM(5, U8, struct snap_symbol, guessed, 1),
	ONE(6, TEXT, struct snap_symbol, name),
	ONE(7, TEXT, struct snap_symbol, module),
	ONE(8, TEXT, struct snap_symbol, reason),
	ONE(9, U64, struct snap_symbol, samples),
	ONE(10, U64, struct snap_symbol, samples_total),
	RULE(11, VALUE, struct snap_symbol, pct, RULE_SYMBOL_PCT),
	RULE(12, VALUE, struct snap_symbol, pct_total, RULE_SYMBOL_PCT_TOTAL),
	PART(13, struct snap_symbol, caller[0], caller_fields),
	PART(14, struct snap_symbol, caller[1], caller_fields),
	PART(15, struct snap_symbol, caller[2], caller_fields),
	PART(16, struct snap_symbol, caller[3], caller_fields),
	END,
};

static const struct store_field code_fields[] = {
	ONE(1, U32, struct snap_code, vm),
	ONE(2, U32, struct snap_code, isa),
	ONE(3, U64, struct snap_code, reason),
	ONE(4, TEXT, struct snap_code, exit),
	PART(5, struct snap_code, key, symbol_key_fields),
	ONE(6, TEXT, struct snap_code, name),
	ONE(7, TEXT, struct snap_code, module),
	ONE(8, TEXT, struct snap_code, why),
	ONE(9, U64, struct snap_code, count),
	ONE(10, U64, struct snap_code, total),
	ONE(11, VALUE, struct snap_code, pct),
	ONE(12, VALUE, struct snap_code, pct_total),
	ENUM(13, U8, struct snap_code, low, WHY_NR - 1),
	ENUM(14, U8, struct snap_code, low_total, WHY_NR - 1),
	END,
};

static const struct store_field waited_fields[] = {
	ONE(1, U32, struct snap_waited, vm),
	ONE(2, I32, struct snap_waited, vcpu),
	ENUM(3, U8, struct snap_waited, kind, WAITED_UNKNOWN),
	ONE(4, U32, struct snap_waited, by_vm),
	ONE(5, TEXT, struct snap_waited, name),
	ONE(6, U64, struct snap_waited, ns),
	RULE(7, VALUE, struct snap_waited, share, RULE_WAITED_SHARE),
	RULE(8, VALUE, struct snap_waited, pct, RULE_WAITED_PCT),
	END,
};

static const struct store_field slow_fields[] = {
	ONE(1, U32, struct snap_slow, vm),
	ONE(2, I32, struct snap_slow, vcpu),
	ENUM(3, U8, struct snap_slow, fresh, 1),
	ONE(4, I64, struct snap_slow, end),
	ONE(5, I32, struct snap_slow, tid),
	ONE(6, LINE, struct snap_slow, time),
	ONE(7, LINE, struct snap_slow, at),
	ONE(8, U32, struct snap_slow, isa),
	ONE(9, U64, struct snap_slow, reason),
	ONE(10, TEXT, struct snap_slow, exit),
	ONE(11, U64, struct snap_slow, ns),
	ONE(12, LINE, struct snap_slow, rip),
	PART(13, struct snap_slow, key, symbol_key_fields),
	ONE(14, TEXT, struct snap_slow, name),
	ONE(15, TEXT, struct snap_slow, module),
	ONE(16, TEXT, struct snap_slow, why),
	ONE(17, TEXT, struct snap_slow, user),
	ONE(18, VALUE, struct snap_slow, user_ns),
	END,
};

static const struct store_field slice_fields[] = {
	ONE(1, I64, struct snap_slice, at),
	ONE(2, U64, struct snap_slice, key),
	ONE(3, U64, struct snap_slice, count),
	ONE(4, U64, struct snap_slice, timed),
	ONE(5, HEAT, struct snap_slice, heat),
	ONE(6, U32, struct snap_slice, isa),
	ENUM(7, U8, struct snap_slice, kind, KIND_NR - 1),
	ONE(8, U8, struct snap_slice, dir),
	END,
};

static const struct store_field stream_fields[] = {
	ONE(1, U32, struct snap_stream, vcpu),
	ONE(2, U32, struct snap_stream, kinds),
	ONE(3, I64, struct snap_stream, slice_ns),
	ONE(4, I64, struct snap_stream, from),
	ONE(5, U64, struct snap_stream, events),
	ONE(6, U64, struct snap_stream, lost),
	END,
};

static const struct store_field pmc_fields[] = {
	ONE(1, U32, struct snap_pmc, vm),
	ONE(2, I32, struct snap_pmc, vcpu),
	ENUM(3, U8, struct snap_pmc, fixed, 1),
	ENUM(4, U8, struct snap_pmc, enabled, 1),
	ENUM(5, U8, struct snap_pmc, inferred, 1),
	ENUM(6, U8, struct snap_pmc, wrong, 1),
	ONE(7, U8, struct snap_pmc, nr),
	ONE(8, TEXT, struct snap_pmc, counter),
	ONE(9, TEXT, struct snap_pmc, event),
	ONE(10, TEXT, struct snap_pmc, mode),
	ONE(11, TEXT, struct snap_pmc, select),
	ONE(12, TEXT, struct snap_pmc, host_event),
	ONE(13, LINE, struct snap_pmc, note),
	ONE(14, VALUE, struct snap_pmc, value),
	ONE(15, VALUE, struct snap_pmc, rate),
	ONE(16, VALUE, struct snap_pmc, running),
	ONE(17, VALUE, struct snap_pmc, overflows),
	ONE(18, VALUE, struct snap_pmc, accesses),
	END,
};

static const struct store_field thread_fields[] = {
	ONE(1, U32, struct snap_thread, vm),	      ONE(2, I32, struct snap_thread, tid),
	ONE(3, TEXT, struct snap_thread, comm),	      ENUM(4, U8, struct snap_thread, role, 15),
	ONE(5, U8, struct snap_thread, state),	      ONE(6, I32, struct snap_thread, cpu),
	PART(7, struct snap_thread, use, use_fields), END,
};

static const struct store_field task_fields[] = {
	ONE(1, I32, struct snap_task, pid),
	ONE(2, LINE, struct snap_task, comm),
	ONE(3, U8, struct snap_task, state),
	ONE(4, VALUE, struct snap_task, cpu),
	END,
};

static const struct store_field cpu_fields[] = {
	ONE(1, I32, struct snap_cpu, cpu),
	ENUM(2, U8, struct snap_cpu, online, 1),
	ONE(3, I32, struct snap_cpu, node),
	ONE(4, I32, struct snap_cpu, core),
	ONE(5, I32, struct snap_cpu, package),
	ONE(6, I32, struct snap_cpu, sibling),
	ONE(7, VALUE, struct snap_cpu, usr),
	ONE(8, VALUE, struct snap_cpu, sys),
	ONE(9, VALUE, struct snap_cpu, irq),
	ONE(10, VALUE, struct snap_cpu, wa),
	ONE(11, VALUE, struct snap_cpu, st),
	ONE(12, VALUE, struct snap_cpu, guest),
	ONE(13, VALUE, struct snap_cpu, idle),
	ONE(14, VALUE, struct snap_cpu, wait),
	ONE(15, U32, struct snap_cpu, nvcpu_seen),
	ONE(16, U32, struct snap_cpu, npinned),
	ONE(17, LINE, struct snap_cpu, vcpus),
	ENUM(18, U8, struct snap_cpu, pins, SNAP_PINS_NONE),
	END,
};

static const struct store_field finding_fields[] = {
	ONE(1, TEXT, struct snap_finding, rule),   ONE(2, U8, struct snap_finding, level),
	ONE(3, I32, struct snap_finding, vm),	   ONE(4, I32, struct snap_finding, vcpu),
	ONE(5, VALUE, struct snap_finding, value), ONE(6, NUMBER, struct snap_finding, threshold),
	ONE(7, I64, struct snap_finding, since),   ONE(8, LINE, struct snap_finding, text),
	ONE(9, TEXT, struct snap_finding, next),   END,
};

static const struct store_field source_fields[] = {
	ONE(1, TEXT, struct snap_source, name),
	ENUM(2, U8, struct snap_source, state, SOURCE_OFF),
	ONE(3, TEXT, struct snap_source, why),
	ONE(4, TEXT, struct snap_source, mend),
	END,
};

#define SELF(id, fields)                                                                           \
	{                                                                                          \
		(id), "interval", (fields), sizeof(struct snapshot), 0, 0, 1                       \
	}
#define HERE(id, m, fields, row, fixed)                                                            \
	{                                                                                          \
		(id), #m, (fields), sizeof(row), offsetof(struct snapshot, m), 0, (fixed)          \
	}
#define ROWS(id, m, fields, row)                                                                   \
	{                                                                                          \
		(id), #m, (fields), sizeof(row), offsetof(struct snapshot, m),                     \
			offsetof(struct snapshot, n##m), 0                                         \
	}

const struct store_table store_tables[] = {
	SELF(STORE_INTERVAL, interval_fields),
	HERE(STORE_HOST, host, host_fields, struct snap_host, 1),
	ROWS(STORE_VMS, vms, vm_fields, struct snap_vm),
	ROWS(STORE_VCPUS, vcpus, vcpu_fields, struct snap_vcpu),
	ROWS(STORE_EXITS, exits, exit_fields, struct snap_exit),
	ROWS(STORE_SYMBOLS, symbols, symbol_fields, struct snap_symbol),
	ROWS(STORE_CODE, code, code_fields, struct snap_code),
	ROWS(STORE_WAITED, waited, waited_fields, struct snap_waited),
	ROWS(STORE_SLOW, slow, slow_fields, struct snap_slow),
	ROWS(STORE_SLICES, slices, slice_fields, struct snap_slice),
	HERE(STORE_STREAM, stream, stream_fields, struct snap_stream, 1),
	ROWS(STORE_PMCS, pmcs, pmc_fields, struct snap_pmc),
	ROWS(STORE_THREADS, threads, thread_fields, struct snap_thread),
	ROWS(STORE_TASKS, tasks, task_fields, struct snap_task),
	ROWS(STORE_CPUS, cpus, cpu_fields, struct snap_cpu),
	ROWS(STORE_FINDINGS, findings, finding_fields, struct snap_finding),
	ROWS(STORE_SOURCES, sources, source_fields, struct snap_source),
	HERE(STORE_KINDS, kinds, kind_fields, struct tally, KIND_NR),
	HERE(STORE_KINDS_TOTAL, kinds_total, kind_total_fields, struct tally, KIND_NR),
	HERE(STORE_SAMPLING, sampling, sampling_fields, struct snap_sampling, 1),
};

const size_t store_ntables = sizeof(store_tables) / sizeof(store_tables[0]);

const void *store_rows(const struct store_table *t, const struct snapshot *s, size_t *n)
{
	const char *base = (const char *)s;

	if (t->fixed) {
		*n = t->fixed;
		return base + t->rows_at;
	}
	*n = *(const size_t *)(base + t->n_at);
	return *(const void *const *)(base + t->rows_at);
}

static size_t add_leaves(const struct store_field *f, uint32_t under, size_t at,
			 struct store_leaf *out, size_t n)
{
	for (; f->id; f++) {
		/* At most 63 members a struct, two levels deep: columns have numbers below 4096. */
		uint32_t id = under * 64 + f->id;

		if (f->type == STORE_PART)
			n = add_leaves(f->part, id, at + f->at, out, n);
		else if (n < STORE_LEAVES)
			out[n++] = (struct store_leaf){.f = f, .id = id, .at = at + f->at};
	}
	return n;
}

size_t store_leaves(const struct store_table *t, struct store_leaf *out)
{
	return add_leaves(t->field, 0, 0, out, 0);
}
