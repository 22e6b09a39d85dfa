// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest's PMU as its host sees it: the file `pmu` of a vCPU in debugfs (kernel-support/README.md
 * has its format), the MSRs by which a guest programs its counters, the names of what they count,
 * and in words why one does not count.
 */
#ifndef KVMTOP_PMU_H
#define KVMTOP_PMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pmu_vendor { PMU_VENDOR_UNKNOWN, PMU_INTEL, PMU_AMD };

/* The perf event of the host behind a counter. */
enum pmu_event {
	PMU_EVENT_UNKNOWN, /* nobody tells: the counter is inferred from what the guest wrote */
	PMU_EVENT_NONE,
	PMU_EVENT_ACTIVE,
	PMU_EVENT_INACTIVE, /* not on a CPU now, as its thread */
	PMU_EVENT_OFF,
	PMU_EVENT_ERROR, /* somebody on the host has the counter pinned */
	PMU_EVENT_GONE,
	PMU_EVENT_HOST, /* none: it counts what the host does with the vCPU */
	PMU_EVENT_OTHER, /* a state that a later kernel has */
	PMU_EVENT_NR
};

struct pmu_counter {
	bool fixed; /* one of the fixed-function counters */
	uint8_t nr;
	uint8_t event; /* enum pmu_event */
	bool has_select, has_value;
	bool enabled; /* by its own bits and the global ones, as far as they are known */
	bool refused; /* what the guest wrote to its event select got #GP, all of it */
	uint64_t select; /* of a fixed one its four bits of fixed_ctr_ctrl */
	int64_t selected; /* ns: inferred, when the guest wrote that */
	uint64_t value;
	uint64_t overflows; /* since the vCPU was made */
	uint64_t time_enabled, time_running; /* ns */
	uint64_t accesses; /* exits by its MSRs since somebody looks */
};

#define PMU_COUNTERS 48
struct pmu_state {
	bool inferred; /* from what the guest wrote since somebody looks */
	bool soft; /* clocks of the kernel are behind the counters, not the host's PMU */
	bool enabled; /* KVM gives the guest a PMU; inferred: nothing is known against it */
	uint8_t vendor; /* enum pmu_vendor */
	unsigned version, gp, fixed, gp_width, fixed_width;
	bool has_global_ctrl, has_fixed_ctrl; /* always but where it is inferred */
	uint64_t global_ctrl, global_status, fixed_ctr_ctrl;
	bool has_accesses; /* somebody counts these: .accesses, .refused, and a counter's */
	uint64_t accesses; /* exits by all MSRs of the PMU since somebody looks */
	uint64_t refused; /* of them: those that got #GP */
	size_t n;
	struct pmu_counter counter[PMU_COUNTERS];
};

/*
 * Takes the text of debugfs' file. 0, -EPROTONOSUPPORT: another format than 1, -EINVAL: not of the
 * format (a key that is needed is missing, stands twice or is no number, counters are not those of
 * the first line), -E2BIG: more counters than PMU_COUNTERS. Keys that are not known are passed
 * over. The vendor is left to the caller.
 */
int pmu_parse(const char *text, size_t len, struct pmu_state *out);

/* ---- MSRs ---- */

enum pmu_reg {
	PMU_REG_SELECT, /* event select of counter nr */
	PMU_REG_COUNTER, /* counter nr */
	PMU_REG_FIXED, /* fixed counter nr */
	PMU_REG_FIXED_CTRL,
	PMU_REG_GLOBAL_CTRL,
	PMU_REG_GLOBAL_STATUS,
	PMU_REG_OTHER, /* belongs to the PMU, and tells nothing here */
};

struct pmu_range {
	uint32_t first, last;
	uint8_t reg; /* enum pmu_reg */
	uint8_t vendor; /* enum pmu_vendor */
};

/* All that there are: the architectural ones of Intel, AMD's legacy and core ones, and the global
 * ones of both. */
#define PMU_RANGES 14
extern const struct pmu_range pmu_ranges[PMU_RANGES];

struct pmu_msr {
	uint8_t reg, vendor, nr;
};

/* False: it is none of a PMU. */
bool pmu_msr_find(uint64_t msr, struct pmu_msr *out);

/* What a guest did to one MSR since somebody looks. */
struct pmu_access {
	uint32_t msr;
	bool has_value, refused; /* the last write: took effect with this value, or got #GP */
	uint64_t value;
	int64_t written; /* ns, when the guest wrote that */
	uint64_t count; /* reads and writes */
	uint64_t nrefused; /* of them */
};

/* The state that follows from them; counters beyond PMU_COUNTERS are left out. */
void pmu_infer(const struct pmu_access *a, size_t n, struct pmu_state *out);
/* Adds how often the MSRs were used to a state that came from debugfs, where somebody counts that.
 */
void pmu_add_accesses(const struct pmu_access *a, size_t n, struct pmu_state *s);

/* ---- words; all into out[size], never longer ---- */

/* "cycles", "cache-misses", "r412e" (umask and event, as perf writes it); "" none is selected. */
void pmu_event_name(const struct pmu_state *s, const struct pmu_counter *c, char *out, size_t size);
/* "user+kernel", "kernel edge cmask=1"; "" none is selected. */
void pmu_event_mode(const struct pmu_state *s, const struct pmu_counter *c, char *out, size_t size);
/*
 * Why this counter does not count, or counts less than the guest believes; "" nothing is known
 * against it. running: the share of the time for which it was on a CPU's counter, < 0 not known.
 */
void pmu_note(const struct pmu_state *s, const struct pmu_counter *c, double running, char *out,
	      size_t size);
/* It is on, and does not count for all of the time, as far as is known. */
bool pmu_wrong(const struct pmu_state *s, const struct pmu_counter *c, double running);
/* "version 2, 6 counters of 48 bits, 3 fixed"; "off: …". */
void pmu_summary(const struct pmu_state *s, char *out, size_t size);
const char *pmu_event_state_name(enum pmu_event e); /* "active" …, "" unknown */

#endif
