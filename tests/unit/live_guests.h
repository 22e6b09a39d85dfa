// SPDX-License-Identifier: GPL-2.0-only
/*
 * Real guests of tests whose truth is how many exits they made: each a VM of one vCPU, whose thread
 * makes as many as it is told. They need root, /dev/kvm and tracefs.
 */
#ifndef KVMTOP_TEST_LIVE_GUESTS_H
#define KVMTOP_TEST_LIVE_GUESTS_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "collector.h"
#include "inventory.h"
#include "needs_guests.h"
#include "sysroot.h"
#include "tinyvm.h"

/* A VM of one vCPU, whose thread makes as many exits as it is told. */
struct guest {
	struct tinyvm *vm;
	pthread_t thread;
	sem_t go, done;
	uint64_t exits; /* of the next go; 0: until it is stopped, then it ends */
	bool let_go, ended;
	pid_t tid;
	struct inv_vm *inv;
	struct inv_vcpu *vcpu;
};

static inline void *guest_thread(void *arg)
{
	struct guest *g = arg;
	bool go_on = true;

	g->tid = (pid_t)syscall(SYS_gettid);
	sem_post(&g->done);
	while (go_on) {
		sem_wait(&g->go);
		go_on = g->exits > 0;
		tinyvm_run(g->vm, 0, g->exits);
		sem_post(&g->done);
	}
	return NULL;
}

static inline void start_guest(struct inventory *inv, struct guest *g)
{
	struct inv_thread *t;
	struct tinyvm_program p = {0}; /* as fast as it can */
	char key[40];

	assert_int_equal(tinyvm_parse("out:inf", &p), 0);
	assert_int_equal(tinyvm_new(&g->vm, NULL), 0);
	assert_int_equal(tinyvm_add_vcpu(g->vm, 0, &p), 0);
	sem_init(&g->go, 0, 0);
	sem_init(&g->done, 0, 0);
	assert_int_equal(pthread_create(&g->thread, NULL, guest_thread, g), 0);
	sem_wait(&g->done);
	snprintf(key, sizeof(key), "%d-1", g->tid);
	g->inv = inventory_add_vm(inv, getpid(), 1, key);
	g->vcpu = inventory_add_vcpu(inv, g->inv, 0);
	t = inventory_add_thread(inv, g->inv, getpid(), g->tid, 1, ROLE_VCPU);
	assert_true(g->inv && g->vcpu && t);
	inventory_set_thread(inv, g->vcpu, t);
}

/* exits 0: as many as it can, until its end. */
static inline void let_go(struct guest *g, uint64_t exits)
{
	g->exits = exits;
	g->let_go = !exits;
	sem_post(&g->go);
}

static inline uint64_t runs(const struct guest *g)
{
	struct tinyvm_counts c;

	tinyvm_counts(g->vm, 0, &c);
	return c.runs;
}

/* So many exits, no less and no more; how many KVM_RUNs that were. */
static inline uint64_t exits(struct guest *g, uint64_t n)
{
	uint64_t before = runs(g);

	let_go(g, n);
	sem_wait(&g->done);
	return runs(g) - before;
}

static inline void end_guest(struct guest *g)
{
	if (g->ended)
		return;
	g->ended = true;
	tinyvm_stop(g->vm);
	if (!g->let_go)
		let_go(g, 0);
	pthread_join(g->thread, NULL);
	tinyvm_free(g->vm);
	sem_destroy(&g->go);
	sem_destroy(&g->done);
}

/* Two guests, and what a collector is given of them and of this host. */
struct live {
	struct guest a, b;
	struct sink sink;
	struct collector_config config;
	struct collector_env env;
};

/* small_rings: rings that lose events. */
static inline void live_begin(struct live *l, const struct sink *sink, bool small_rings)
{
	memset(l, 0, sizeof(*l));
	l->sink = *sink;
	l->config =
		(struct collector_config){.delay_s = 1, .sample_hz = 997, .lost_test = small_rings};
	l->env = (struct collector_env){
		.sink = &l->sink, .config = &l->config, .inv = inventory_new()};
	assert_non_null(l->env.inv);
	assert_int_equal(sysroot_open(NULL, &l->env.root), 0);
	start_guest(l->env.inv, &l->a);
	start_guest(l->env.inv, &l->b);
}

/* After the collector was closed. */
static inline void live_end(struct live *l)
{
	end_guest(&l->a);
	end_guest(&l->b);
	inventory_free(l->env.inv);
	sysroot_close(l->env.root);
}

#define LIVE_MARGIN (5 * NS_PER_MS) /* as the collectors have it */

/* A watermark behind which lies all that was done before this call. */
static inline int64_t live_watermark(void)
{
	usleep(2 * LIVE_MARGIN / 1000);
	return clock_mono_ns() - LIVE_MARGIN;
}

/* In a mount namespace of its own, so that nothing of it stays. */
static inline void mount_tracefs(void)
{
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return;
	if (access(TRACEFS "/events", F_OK))
		mount("tracefs", TRACEFS, "tracefs", 0, NULL);
}

#endif
