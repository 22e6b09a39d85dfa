// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collector `vpmu`: what guests do with their PMUs. From the file `pmu` in debugfs where the kernel
 * has it (kernel-support/); else the event selects as the guests last wrote them (kvm_msr), from
 * the time on when somebody asked first. Both only while somebody asks: reading a counter that
 * counts interrupts the CPU on which it does.
 */
#include "vpmu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpf_access.h"
#include "clock.h"
#include "inventory.h"
#include "pmu.h"
#include "sampling_event.h"
#include "sysroot.h"
#include "vpmu_msrs.h"

#define SOURCE "vpmu"
#define FROM_FILE "works: debugfs kvm/*/vcpu*/pmu"
#define KVM_DIR "sys/kernel/debug/kvm"
#define A_TICK 64 /* vCPUs */
#define TEXT_MAX 8192 /* of the file: 48 counters have 7 KiB */
#define LINGER_NS (60 * NS_PER_S) /* what guests wrote is kept in mind for those who come back */

struct vpmu {
	const struct collector_env *env;
	struct vpmu_msrs *msrs; /* NULL: nobody asks, or it cannot be had */
	bool asked, all, failed;
	uint32_t vm; /* the selected one */
	int64_t left; /* when the last one left who asked; 0: somebody asks */
	size_t next; /* of the vCPUs that are asked for, in the inventory's order */
	uint8_t vendor; /* enum pmu_vendor, of the host */
	bool guests; /* they may have a PMU */
	bool has_file, odd_file; /* debugfs had a vCPU's file; it was said that one is no use */
	long hz; /* clock ticks a second, in which threads' starts are told */
	int64_t slept; /* ns */
	const struct vpmu_entry *entry; /* of this tick, in the order of threads */
	size_t nentry;
	struct pmu_state state;
	char text[TEXT_MAX];
};

/* ---- the host ---- */

static uint8_t vendor_of(const struct sysroot *root)
{
	char buf[4096];
	ssize_t n = sysroot_read(root, "proc/cpuinfo", buf, sizeof(buf));

	if (n < 0 && n != -EFBIG)
		return PMU_VENDOR_UNKNOWN;
	if (strstr(buf, "AuthenticAMD") || strstr(buf, "HygonGenuine"))
		return PMU_AMD;
	return strstr(buf, "GenuineIntel") ? PMU_INTEL : PMU_VENDOR_UNKNOWN;
}

static void tell_host(struct vpmu *p)
{
	const struct sink *s = p->env->sink;
	struct pmu_facts f;
	char why[PROBE_TEXT];

	pmu_facts_read(p->env->root, &f);
	p->guests = f.guests;
	vpmu_host_why(p->env->root, why, sizeof(why));
	if (s->pmu_host)
		s->pmu_host(s->ctx, why);
}

/* ---- MSRs ---- */

static int try(const struct collector_env *env, struct vpmu_msrs **out)
{
	int rc;
	const char *tracefs = bpf_tracefs(env->root, &rc);

	return tracefs ? vpmu_msrs_new(env->root, tracefs, out) : rc;
}

/* Says what is known of the two sources, once they were tried. */
static void say(struct vpmu *p)
{
	const struct sink *s = p->env->sink;

	if (p->has_file)
		s->source(s->ctx, SOURCE, SOURCE_OK,
			  p->msrs ? FROM_FILE
				  : FROM_FILE
				  "; how many exits the MSRs make is not known, without BPF",
			  NULL);
	else if (p->msrs)
		s->source(
			s->ctx, SOURCE, SOURCE_PARTIAL,
			"inferred from what guests write: this kernel has no vcpu*/pmu in debugfs",
			NULL);
}

static bool debugfs_gone(const struct vpmu *p)
{
	struct stat st;

	return sysroot_stat(p->env->root, KVM_DIR, &st) != 0;
}

static void load(struct vpmu *p)
{
	const struct sink *s = p->env->sink;
	struct kvm_reason r;
	size_t at;
	int rc = try(p->env, &p->msrs);

	if (!rc) {
		say(p);
		return;
	}
	p->msrs = NULL;
	p->failed = true;
	if (p->has_file) { /* which needs no program */
		say(p);
		return;
	}
	bpf_why_not(p->env->root, rc, &r);
	at = strlen(r.why);
	if (debugfs_gone(p))
		snprintf(r.why + at, sizeof(r.why) - at, "; and /" KVM_DIR " is not there");
	s->source(s->ctx, SOURCE, SOURCE_OFF, r.why, r.mend[0] ? r.mend : NULL);
}

static void unload(struct vpmu *p)
{
	vpmu_msrs_free(p->msrs);
	p->msrs = NULL;
	p->entry = NULL;
	p->nentry = 0;
}

/* Since when the thread is there; a host that slept since has it earlier, which does no harm. */
static int64_t since(void *ctx, pid_t tid)
{
	const struct vpmu *p = ctx;
	const struct inv_thread *t = inventory_thread(p->env->inv, tid);
	int64_t start;

	if (!t)
		return -1;
	start = (int64_t)(t->start * (uint64_t)(NS_PER_S / p->hz)) - p->slept;
	return t->start && start > 0 ? start : 0;
}

/* How much of the time since boot, by which threads' starts are told, CLOCK_MONOTONIC has not. */
static int64_t slept(void)
{
	struct timespec boot;

	return clock_gettime(CLOCK_BOOTTIME, &boot) ? INT64_MAX
						    : timespec_ns(boot) - clock_mono_ns();
}

/* What the thread's guest did, at most PMU_ACCESSES. */
#define PMU_ACCESSES 96
static size_t accesses_of(const struct vpmu *p, pid_t tid, struct pmu_access *out)
{
	size_t from = 0, to = p->nentry, n = 0;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (p->entry[mid].tid < tid)
			from = mid + 1;
		else
			to = mid;
	}
	for (; from < p->nentry && p->entry[from].tid == tid && n < PMU_ACCESSES; from++)
		out[n++] = p->entry[from].a;
	return n;
}

/* ---- a vCPU ---- */

static int read_file(struct vpmu *p, const struct inv_vcpu *v)
{
	ssize_t n = sysroot_readf(p->env->root, p->text, sizeof(p->text), KVM_DIR "/%s/vcpu%d/pmu",
				  v->vm->key, v->kvm_id);
	int rc = n < 0 ? (int)n : pmu_parse(p->text, (size_t)n, &p->state);

	if (!rc)
		p->state.vendor = p->vendor;
	return rc;
}

/* The file is not there, or its vCPU ended while it was read (EIO). */
static bool is_gone(int err)
{
	return err == -ENOENT || err == -ESRCH || err == -ENODEV || err == -EIO;
}

/* A file that is not understood is no reason to have nothing. Said once. */
static void say_unknown(struct vpmu *p, int err)
{
	const struct sink *s = p->env->sink;
	char why[PROBE_TEXT];

	if (p->odd_file || is_gone(err))
		return;
	p->odd_file = true;
	snprintf(why, sizeof(why), "%sdebugfs vcpu*/pmu %s", p->msrs ? "inferred: " : "",
		 err == -EPROTONOSUPPORT	   ? "is of a later format than this kvmtop knows"
		 : err == -EACCES || err == -EPERM ? "may not be read"
						   : "cannot be read");
	s->source(s->ctx, SOURCE, p->msrs || p->has_file ? SOURCE_PARTIAL : SOURCE_OFF, why, NULL);
}

/* debugfs was unmounted; it may come back. What guests write is told still. */
static void see_it_gone(struct vpmu *p)
{
	const struct sink *s = p->env->sink;

	if (!p->has_file || !debugfs_gone(p))
		return;
	p->has_file = false;
	if (p->msrs)
		s->source(s->ctx, SOURCE, SOURCE_PARTIAL,
			  "inferred from what guests write: /" KVM_DIR " is gone", NULL);
	else
		s->source(s->ctx, SOURCE, SOURCE_OFF, "/" KVM_DIR " is gone",
			  "mount -t debugfs debugfs /sys/kernel/debug");
}

static bool is_one(const struct inv_vcpu *v)
{
	return v->thread && v->thread->nvcpus == 1;
}

static void read_vcpu(struct vpmu *p, struct inv_vcpu *v)
{
	const struct sink *s = p->env->sink;
	struct pmu_reading r = {.vcpu = v, .state = &p->state};
	struct pmu_access a[PMU_ACCESSES];
	bool told = p->msrs && is_one(v); /* what its guest wrote */
	size_t n = told ? accesses_of(p, v->thread->tid, a) : 0;
	int rc = read_file(p, v);

	if (!rc && !p->has_file) {
		p->has_file = true;
		say(p);
	} else if (rc == -ENOENT) {
		see_it_gone(p);
	} else if (rc) {
		say_unknown(p, rc);
	}
	if (!rc && told)
		pmu_add_accesses(a, n, &p->state);
	if (rc && told) {
		pmu_infer(a, n, &p->state);
		p->state.enabled = p->guests;
	}
	if (rc && !told)
		r.state = NULL;
	r.time = clock_mono_ns();
	s->pmu(s->ctx, &r);
}

static bool wanted(const struct vpmu *p, const struct inv_vm *vm)
{
	return (p->all || vm->id == p->vm) && !(vm->flags & (INV_GONE | INV_PROVISIONAL));
}

static void read_some(struct vpmu *p)
{
	size_t at = 0, from = p->next, end = p->next + A_TICK;

	for (struct inv_vm *vm = inventory_first(p->env->inv); vm; vm = vm->next)
		for (size_t i = 0; wanted(p, vm) && i < vm->nvcpu; i++, at++)
			if (at >= from && at < end && !(vm->vcpu[i]->flags & INV_GONE))
				read_vcpu(p, vm->vcpu[i]);
	p->next = end < at ? end : 0;
}

static int vpmu_tick(void *state, int64_t now_ns, int64_t watermark)
{
	struct vpmu *p = state;

	(void)watermark;
	if (p->left && now_ns - p->left > LINGER_NS) {
		unload(p);
		p->left = 0;
	}
	if (!p->asked || !p->env->sink->pmu)
		return 0;
	tell_host(p);
	p->nentry = 0;
	p->slept = slept();
	if (p->msrs)
		p->entry = vpmu_msrs_read(p->msrs, now_ns, since, p, &p->nentry);
	read_some(p);
	return 0;
}

static void vpmu_demand(void *state, const struct demand *d)
{
	struct vpmu *p = state;
	bool asked = d->pmu_all || (d->pmu && d->vm);

	p->all = d->pmu_all;
	p->vm = d->vm;
	if (p->asked && !asked) {
		p->left = clock_mono_ns();
		p->failed = false;
	}
	p->asked = asked;
	if (!asked || !p->env->sink->pmu)
		return;
	p->left = 0;
	/* At once: what a guest wrote before is not known. */
	if (!p->msrs && !p->failed)
		load(p);
	tell_host(p);
}

static void vpmu_probe(const struct collector_env *env, struct probes *out)
{
	struct vpmu_msrs *m = NULL;
	struct kvm_reason r;
	int rc;

	/* A program that collects loads it when somebody asks, and says then what came of it. */
	if (env->sink)
		return;
	if (vpmu_patched(env->root)) {
		probe_add(out, SOURCE, SOURCE_OK, NULL, FROM_FILE);
		return;
	}
	rc = try(env, &m);
	vpmu_msrs_free(m);
	if (rc) {
		bpf_why_not(env->root, rc, &r);
		probe_add(out, SOURCE, SOURCE_OFF, r.mend, "%s", r.why);
		return;
	}
	probe_add(out, SOURCE, SOURCE_OK, NULL,
		  "works: debugfs vcpu*/pmu where the kernel has it, else what guests write "
		  "(kvm_msr)");
}

static int vpmu_open(const struct collector_env *env, void **state)
{
	struct vpmu *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->env = env;
	p->vendor = vendor_of(env->root);
	p->hz = sysconf(_SC_CLK_TCK);
	*state = p;
	return 0;
}

static void vpmu_close(void *state)
{
	struct vpmu *p = state;

	if (p)
		unload(p);
	free(p);
}

const struct collector collector_vpmu = {
	.name = "vpmu",
	.what = "what guests do with their PMUs, while asked for: debugfs on a kernel with our "
		"patches, else their writes to its MSRs",
	.probe = vpmu_probe,
	.open = vpmu_open,
	.tick = vpmu_tick,
	.demand = vpmu_demand,
	.close = vpmu_close,
};
