// SPDX-License-Identifier: GPL-2.0-only
/*
 * What doctor says of the kvm tracepoints: whether they can be had, and in which ways.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "kvm_access.h"
#include "kvm_bpf.h"
#include "kvm_count.h"
#include "kvm_events.h"
#include "kvm_format.h"
#include "perf_rings.h"
#include "sysroot.h"

#define BESIDE_A_GUEST "run doctor while a guest does, as those of kvmtop demo"
#define PROBE_MS 300 /* how long it waits for a kvm_exit */

/* Opens one event for a moment, switched off: nothing but that tells what the kernel says. */
static int try_perf(const struct collector_env *env, const char *tracefs)
{
	struct kvm_format *f = kvm_format_new();
	struct perf_rings *rings = NULL;
	int *cpu = NULL, rc = f ? kvm_load_formats(env->root, tracefs, f, NULL) : -ENOMEM;

	if (rc > 0)
		rc = perf_rings_new(RING_MIN, 1, true, &rings);
	if (!rc)
		rc = kvm_online_cpus(env->root, &cpu);
	if (rc > 0)
		rc = perf_rings_set_cpus(rings, cpu, 1, clock_mono_ns(), NULL, NULL);
	for (unsigned i = 0; !rc && i < KVM_EVENTS; i++)
		if (kvm_format_id(f, i)) {
			rc = perf_rings_open(rings, i, (uint64_t)kvm_format_id(f, i));
			break;
		}
	free(cpu);
	perf_rings_free(rings);
	kvm_format_free(f);
	return rc;
}

static void probe_events(const struct collector_env *env, const char *tracefs, struct probes *out)
{
	char missing[PROBE_TEXT] = "";
	size_t at = 0;

	for (unsigned i = 0; i < KVM_EVENTS; i++) {
		char path[160];
		int fd;

		snprintf(path, sizeof(path), "%s/events/%s/%s/format", tracefs,
			 kvm_events[i].system, kvm_events[i].event);
		fd = sysroot_openat(env->root, path, O_RDONLY);
		if (fd >= 0)
			close(fd);
		else if (i < 9 && at < sizeof(missing)) /* behind them: other architectures' */
			at += (size_t)snprintf(missing + at, sizeof(missing) - at, "%s%s",
					       at ? ", " : "", kvm_events[i].event);
	}
	if (*missing)
		probe_add(out, "kvm events", SOURCE_PARTIAL, NULL, "this kernel lacks: %s",
			  missing);
	else
		probe_add(out, "kvm events", SOURCE_OK, NULL, "all kinds are there");
}

static uint64_t id_of(const struct kvm_format *f, unsigned type)
{
	for (unsigned i = 0; i < KVM_EVENTS; i++)
		if (kvm_events[i].type == type && kvm_format_id(f, i))
			return (uint64_t)kvm_format_id(f, i);
	return 0;
}

/* x86 without hardware that runs guests: KVM does it by other means. */
static bool without_hardware(const char *cpuinfo)
{
	const char *flags = strstr(cpuinfo, "\nflags\t");
	size_t n = flags ? strcspn(flags + 1, "\n") + 1 : 0;
	static const char *const words[] = {" vmx", " svm"};

	for (size_t i = 0; flags && i < 2; i++)
		for (const char *p = flags; (p = strstr(p, words[i])) && p < flags + n; p += 4)
			if (p[4] == ' ' || p[4] == '\n' || !p[4])
				return false;
	return flags;
}

int kvm_exits_state(uint64_t exits, uint64_t returns, const char *cpuinfo, const char **why)
{
	if (exits) {
		*why = "kvm_exit fires";
		return SOURCE_OK;
	}
	if (returns > KVM_OTHERS_ENOUGH) {
		*why = KVM_NO_EXITS;
		return SOURCE_PARTIAL;
	}
	if (without_hardware(cpuinfo)) {
		*why = "no guest ran just now, and without vmx and svm a KVM may fire no kvm_exit: "
		       "exits would then be counted by other events, and have no times";
		return SOURCE_PARTIAL;
	}
	*why = "no guest ran just now: whether kvm_exit fires is seen when one does";
	return SOURCE_OK;
}

static void probe_exits(const struct collector_env *env, const char *tracefs, struct probes *out)
{
	struct kvm_format *f = kvm_format_new();
	char cpuinfo[8192] = "";
	uint64_t id[2], n[2];
	const char *why;
	int state;

	if (f && kvm_load_formats(env->root, tracefs, f, NULL) > 0) {
		id[0] = id_of(f, EV_EXIT);
		id[1] = id_of(f, EV_USEREXIT);
		if (id[0] && id[1] && !kvm_count(id, n, 2, PROBE_MS)) {
			/* Longer than that: the beginning will do. */
			sysroot_read(env->root, "proc/cpuinfo", cpuinfo, sizeof(cpuinfo));
			state = kvm_exits_state(n[0], n[1], cpuinfo, &why);
			probe_add(out, "kvm exits", state,
				  n[0] || n[1] > KVM_OTHERS_ENOUGH ? NULL : BESIDE_A_GUEST, "%s",
				  why);
		}
	}
	kvm_format_free(f);
}

static void probe_rings(const struct collector_env *env, const struct kvm_rights *rights,
			struct probes *out)
{
	int *cpu, n = kvm_online_cpus(env->root, &cpu);
	struct kvm_reason r;

	free(cpu);
	if (n <= 0)
		return;
	if (kvm_why_partial(env->root, rights, (unsigned)n, RING_MAX,
			    (unsigned long)n * (KVM_EVENTS + 1), &r))
		probe_add(out, "perf rings", SOURCE_PARTIAL, r.mend, "%s", r.why);
	else
		probe_add(out, "perf rings", SOURCE_OK, NULL, "works");
}

static bool no_matter(void *ctx, int32_t tid)
{
	(void)ctx;
	(void)tid;
	return false;
}

static void probe_counting(const struct collector_env *env, const char *tracefs, struct probes *out)
{
	struct kvm_format *f = kvm_format_new();
	int rc = f ? kvm_load_formats(env->root, tracefs, f, NULL) : -ENOMEM;
	struct kvm_bpf *bpf = NULL;
	struct kvm_reason r;

	if (rc > 0)
		rc = kvm_bpf_new(env->root, tracefs, f, true, no_matter, NULL, &bpf);
	kvm_bpf_why(rc, &r);
	if (rc)
		probe_add(out, "kvm counting", SOURCE_PARTIAL, r.mend, "%s", r.why);
	else
		probe_add(out, "kvm counting", SOURCE_OK, NULL,
			  "works: events can be counted in the kernel");
	kvm_bpf_free(bpf);
	kvm_format_free(f);
}

void kvm_events_probe(const struct collector_env *env, struct probes *out)
{
	static const char what[] = "kvm tracepoints";
	struct kvm_rights rights;
	struct kvm_reason r;
	const char *tracefs;
	int rc;

	if (kvm_no_events(env->root, &r)) {
		probe_add(out, what, SOURCE_OFF, r.mend, "%s", r.why);
		return;
	}
	kvm_rights_read(&rights);
	tracefs = kvm_tracefs(env->root, &rc);
	rc = tracefs ? try_perf(env, tracefs) : 0;
	if (kvm_why_not(env->root, &rights, rc == -ENOENT ? 0 : rc, &r)) {
		probe_add(out, what, SOURCE_OFF, r.mend, "%s", r.why);
		return;
	}
	probe_add(out, what, SOURCE_OK, NULL, "works");
	probe_events(env, tracefs, out);
	if (!env->sink) /* a program that collects finds it out by what comes, and does not wait */
		probe_exits(env, tracefs, out);
	if (!env->sink && env->config && env->config->events_how != EVENTS_PERF)
		probe_counting(env, tracefs, out);
	probe_rings(env, &rights, out);
}
