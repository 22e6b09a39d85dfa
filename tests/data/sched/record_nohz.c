// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recorded the files nohz-*.txt: what /proc says of a busy thread on a CPU without a tick.
 *
 * It is the init of a small machine: linked statically into an initramfs (with /dev/console and
 * /proc), booted by Debian 12's own kernel in an emulated machine of two CPUs:
 *   qemu-system-x86_64 -accel tcg,thread=multi -cpu max,-la57 -smp 2 -m 512M -M pc -nographic
 *     -kernel vmlinuz-6.1.0-57-amd64 -initrd … -append "console=ttyS0 quiet panic=-1 nokaslr
 *     tsc=reliable no_timer_check nowatchdog nohz_full=1 rcu_nocbs=1"
 * A line has the form of record.py's, with both kinds of switches: voluntary,involuntary.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void get(int pid, const char *file, char *buf, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	fd = open(path, O_RDONLY);
	n = read(fd, buf, size - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	buf[strcspn(buf, file[0] == 's' && file[4] == 'u' ? "" : "\n")] = '\0';
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int spin(int policy)
{
	struct sched_param p = {0};
	int pid = fork();

	if (pid)
		return pid;
	pin(1);
	sched_setscheduler(0, policy, &p);
	for (;;)
		;
}

static long after(const char *status, const char *key)
{
	const char *p = strstr(status, key);

	return p ? atol(p + strlen(key)) : -1;
}

static void record(const char *name, int pid, int n)
{
	char stat[1024], sched[128], status[4096];

	printf("=== %s\n", name);
	while (n--) {
		long long t;

		get(pid, "stat", stat, sizeof(stat));
		t = now();
		get(pid, "schedstat", sched, sizeof(sched));
		get(pid, "status", status, sizeof(status));
		printf("%lld|%ld,%ld|0|%s|%s\n", t, after(status, "\nvoluntary_ctxt_switches:"),
		       after(status, "nonvoluntary_ctxt_switches:"), sched, stat);
		usleep(100000);
	}
}

int main(void)
{
	int busy, other;

	mount("proc", "/proc", "proc", 0, 0);
	pin(0);
	busy = spin(SCHED_OTHER);
	usleep(1500000);
	record("nohz-alone", busy, 40);
	other = spin(SCHED_IDLE);
	usleep(1000000);
	record("nohz-starved", other, 30);
	kill(other, SIGKILL);
	usleep(1500000);
	spin(SCHED_OTHER);
	record("nohz-half", busy, 30);
	fflush(stdout);
	usleep(500000);
	reboot(RB_POWER_OFF);
	return 0;
}
