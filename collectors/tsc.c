// SPDX-License-Identifier: GPL-2.0-only
/*
 * Collector `tsc`: offset and scaling of every vCPU's TSC from debugfs. They change seldom and a
 * reading costs three opened files: a part of the vCPUs a tick, in turn. For a recording each write
 * as well, with its moment (tsc_writes.c).
 */
#include "collector_tsc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "inventory.h"
#include "sysroot.h"
#include "tsc_debugfs.h"
#include "tsc_writes.h"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#define A_TICK 64 /* vCPUs; about a millisecond */
#define LOOKS 2 /* in vain for the files of scaling */
#define MEASURE_NS (NS_PER_S / 5) /* the TSC's rate is exact to some millionths then */

struct tsc {
	const struct collector_env *env;
	size_t next; /* of all vCPUs, in the inventory's order */
	uint64_t tsc; /* and the time at which it was so */
	int64_t time;
	double hz;
	struct tsc_writes *writes; /* NULL: not asked for, or not to be had */
};

/* The host's TSC, as good as the clock that it is compared with. 0: no such thing. */
static uint64_t host_tsc(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#else
	return 0;
#endif
}

static void measure(struct tsc *t)
{
	int64_t now = clock_mono_ns(), passed = now - t->time;
	uint64_t tsc = host_tsc();

	if (tsc && passed >= MEASURE_NS)
		t->hz = (double)(tsc - t->tsc) * NS_PER_S / (double)passed;
}

/*
 * Whether it can be scaled does not change as long as it lives. KVM makes the files one after
 * another, so a new vCPU's may be there at the second look.
 */
static void read_scale(const struct tsc *t, struct inv_vcpu *v, struct tsc_scale *scale)
{
	uintptr_t missed = (uintptr_t)v->cookie[INV_COOKIE_TSC];

	*scale = (struct tsc_scale){0};
	if (missed < LOOKS &&
	    tsc_debugfs_scale(t->env->root, v->vm->key, v->kvm_id, scale) == -ENOENT)
		v->cookie[INV_COOKIE_TSC] = (void *)(missed + 1);
}

static void read_vcpu(struct tsc *t, struct inv_vcpu *v)
{
	struct tsc_reading r = {.vcpu = v, .hz = t->hz};
	struct tsc_scale scale;

	if (tsc_debugfs_offset(t->env->root, v->vm->key, v->kvm_id, &r.offset) < 0)
		return;
	read_scale(t, v, &scale);
	r.ratio = scale.ratio;
	r.frac_bits = (uint8_t)scale.frac_bits;
	t->env->sink->tsc(t->env->sink->ctx, &r);
}

static int tsc_tick(void *state, int64_t now_ns, int64_t watermark)
{
	struct tsc *t = state;
	size_t at = 0, all = inventory_nvcpu(t->env->inv), end;

	(void)watermark;
	if (!t->env->sink->tsc)
		return 0;
	measure(t);
	if (t->next >= all)
		t->next = 0;
	end = t->next + A_TICK;
	for (struct inv_vm *vm = inventory_first(t->env->inv); vm && at < end; vm = vm->next) {
		for (size_t i = 0; i < vm->nvcpu; i++, at++)
			if (at >= t->next && at < end &&
			    !(vm->flags & (INV_GONE | INV_PROVISIONAL)))
				read_vcpu(t, vm->vcpu[i]);
	}
	t->next = end;
	tsc_writes_read(t->writes, now_ns);
	return 0;
}

static void tsc_probe(const struct collector_env *env, struct probes *out)
{
	int fd = sysroot_openat(env->root, "sys/kernel/debug/kvm", O_RDONLY | O_DIRECTORY);

	if (fd >= 0)
		probe_add(out, "tsc", SOURCE_OK, NULL, "works: debugfs kvm/*/vcpu*/tsc-offset");
	else if (fd == -ENOENT)
		probe_add(out, "tsc", SOURCE_OFF, "mount -t debugfs debugfs /sys/kernel/debug",
			  "/sys/kernel/debug/kvm is not there");
	else
		probe_add(out, "tsc", SOURCE_OFF,
			  fd == -EACCES || fd == -EPERM ? "sudo kvmtop" : NULL,
			  "/sys/kernel/debug/kvm may not be read: %s", strerror(-fd));
	if (fd >= 0)
		close(fd);
}

/* The readings go on without them. */
static void open_writes(struct tsc *t)
{
	const struct collector_env *env = t->env;
	char err[200] = "";
	int rc;

	if (!env->config->tsc_writes || !env->sink->tsc_write || !sysroot_has_events(env->root))
		return;
	rc = tsc_writes_open(env, &t->writes, err, sizeof(err));
	if (rc)
		env->sink->source(env->sink->ctx, "tsc", SOURCE_PARTIAL, err, NULL);
}

static int tsc_open(const struct collector_env *env, void **state)
{
	struct tsc *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->env = env;
	t->time = clock_mono_ns();
	t->tsc = host_tsc();
	open_writes(t);
	*state = t;
	return 0;
}

static void tsc_close(void *state)
{
	struct tsc *t = state;

	if (t)
		tsc_writes_close(t->writes);
	free(t);
}

const struct collector collector_tsc = {
	.name = "tsc",
	.what = "offset and scaling of the vCPUs' TSCs, and how often they change: debugfs",
	.probe = tsc_probe,
	.open = tsc_open,
	.tick = tsc_tick,
	.close = tsc_close,
};
