// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keeps the lab's CPUs from waiting for each other (tests/lab/init.sh starts it): on each CPU a
 * thread interrupts the others every 20 ms, for ever.
 *
 * QEMU's emulation of SVM clears a bit in a CPU's word of pending interrupts at each exit of a
 * guest (do_vmexit in 7.2), without the lock under which its other threads set bits there. That can
 * lose the bit which another thread sets in this moment, and with it the notice of an interrupt:
 * the APIC has it and waits. Any later interrupt of that CPU brings both, but when it was that of
 * the one-shot timer and nobody else interrupts the CPU, none comes.
 *
 * This is read from QEMU's source; that it is why a lab goes silent has not been seen. It is not
 * all: a lab with this program in it went silent with CPU 0 inside a guest, its timer, a call and a
 * reschedule (236, 251, 253) pending and not taken, and CPU 1 waiting for CPU 0. run.sh prints such
 * things, and begins once more.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 20000000L
#define SECOND_NS 1000000000L

struct kicker {
	const struct kicker *all;
	int cpu, count, fd; /* fd: whoever wants this CPU to be interrupted writes to it */
};

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND_NS + t.tv_nsec;
}

/* Before what the CPU does: only then is it interrupted at once. */
static void go_first(int cpu)
{
	struct sched_param param = {.sched_priority = 1};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
}

/* Whether somebody wrote to fd before the time was up. */
static bool woken(int fd, int64_t ns)
{
	struct timespec t = {.tv_nsec = ns > 0 ? ns : 0};
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t n;

	return ppoll(&p, 1, &t, NULL) == 1 && read(fd, &n, sizeof(n)) == sizeof(n);
}

static void *kick(void *arg)
{
	const struct kicker *k = arg;
	int64_t next = now_ns() + PERIOD_NS;
	const uint64_t one = 1;

	go_first(k->cpu);
	for (;;) {
		if (woken(k->fd, next - now_ns()))
			continue;
		for (int i = 0; i < k->count; i++)
			if (i != k->cpu && write(k->all[i].fd, &one, sizeof(one)) < 0)
				return NULL;
		next = now_ns() + PERIOD_NS;
	}
}

int main(void)
{
	const int count = (int)sysconf(_SC_NPROCESSORS_ONLN);
	struct kicker *all = calloc((size_t)count, sizeof(*all));
	pthread_t thread;

	if (!all)
		return 1;
	for (int i = 0; i < count; i++)
		all[i] = (struct kicker){all, i, count, eventfd(0, EFD_CLOEXEC)};
	for (int i = 1; i < count; i++)
		if (all[i].fd < 0 || pthread_create(&thread, NULL, kick, &all[i]))
			return 1;
	kick(&all[0]);
	return 1;
}
