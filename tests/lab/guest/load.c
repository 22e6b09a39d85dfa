// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a QEMU guest of the lab does, on command: loads whose hot kernel symbols are known.
 *
 * Linked statically and alone in the guest's initramfs beside busybox. Reads lines from its
 * console and answers each with one line:
 *
 *   ping           pong
 *   load NAME [N]  "on NAME"; N times, then "did NAME N", or until
 *   stop           "off"
 *   symbol NAME    "symbol NAME ADDRESS": where its kernel has it; 0: it has not
 *   shell          "on shell": shell.sh waits for a script at the second port
 *   count EVENT PERIOD DO
 *                  "count N SAMPLES NS": CPU 0's count of an event (a raw one in hexadecimal;
 *                  0: cycles) and its samples each PERIOD (0: none) in the time that DO took: sleep
 *                  for 2 s; port, a thousand of that load; or spin, until there is another line,
 *                  after the answer "counting". "count -ERRNO 0 0" where it cannot.
 *   steal          "steal N": what its kernel was told was stolen from all its CPUs, in clock ticks
 *   end            powers the guest off
 *
 * Loads: syscall (getppid), lock (two threads on one table of descriptors), memory (pages touched
 * and given back), shrink (dentries made and dropped), net (UDP over loopback), user (a function of
 * its own, no kernel at all), port (writes to port 0xed, which nothing else uses), hop (naps, on
 * each CPU in turn).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define PORT 0xed
#define ROUND 1000 /* what one call of a load does, where it does many */
#define MEMORY (8u << 20)
#define RING_PAGES 8
#define SLEEP_US 2000000

static void load_syscall(void)
{
	for (int i = 0; i < ROUND; i++)
		syscall(SYS_getppid);
}

static void load_lock(void)
{
	for (int i = 0; i < ROUND; i++)
		close(dup(0));
}

static void load_memory(void)
{
	static char *at;

	if (!at)
		at = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		exit(1);
	madvise(at, MEMORY, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < MEMORY; i += 4096)
		at[i] = 1;
	madvise(at, MEMORY, MADV_DONTNEED);
}

static void load_shrink(void)
{
	struct stat st;
	int fd;

	for (int i = 0; i < 20 * ROUND; i++) {
		char name[32];

		snprintf(name, sizeof(name), "/none-%d", i);
		stat(name, &st);
	}
	fd = open("/proc/sys/vm/drop_caches", O_WRONLY);
	if (fd < 0 || write(fd, "2\n", 2) != 2)
		exit(1);
	close(fd);
}

static void load_net(void)
{
	static int fd = -1;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	char buf[512] = "";

	if (fd < 0) {
		fd = socket(AF_INET, SOCK_DGRAM, 0);
		if (fd < 0 || bind(fd, (void *)&a, len) || getsockname(fd, (void *)&a, &len) ||
		    connect(fd, (void *)&a, len))
			exit(1);
	}
	for (int i = 0; i < ROUND; i++)
		if (send(fd, buf, sizeof(buf), 0) < 0 || recv(fd, buf, sizeof(buf), 0) < 0)
			exit(1);
}

static void load_user(void)
{
	for (volatile int i = 0; i < 1000 * ROUND; i++)
		;
}

/* Through the kernel: not every one lets programs have ports of their own. */
static void load_port(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/port", O_WRONLY);
	if (fd < 0 || pwrite(fd, "", 1, PORT) != 1)
		exit(1);
}

/* Wakes, is woken, and moves: what a trace of the scheduler shows, on all CPUs. */
static void load_hop(void)
{
	static unsigned cpus, cpu;
	cpu_set_t set;

	if (!cpus)
		cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	CPU_ZERO(&set);
	CPU_SET(cpu++ % cpus, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(1);
	usleep(1000);
}

static const struct load {
	const char *name;
	void (*once)(void);
	int threads;
} loads[] = {
	{"syscall", load_syscall, 1}, {"lock", load_lock, 2}, {"memory", load_memory, 1},
	{"shrink", load_shrink, 1},   {"net", load_net, 1},   {"user", load_user, 1},
	{"port", load_port, 1},	      {"hop", load_hop, 1},
};

static void *run_for_ever(void *arg)
{
	const struct load *l = arg;

	for (;;)
		l->once();
	return NULL;
}

static void say(const char *what, const char *name, long n)
{
	char line[64];
	int len = n ? snprintf(line, sizeof(line), "%s %s %ld\n", what, name, n)
		    : snprintf(line, sizeof(line), "%s%s%s\n", what, *name ? " " : "", name);

	if (len > 0 && write(1, line, (size_t)len) != len)
		_exit(1);
}

/* In a process of its own, which is what `stop` ends. */
static pid_t start(const struct load *l, long n)
{
	pid_t pid = fork();
	pthread_t t;

	if (pid)
		return pid;
	if (n) {
		for (long i = 0; i < n; i++)
			l->once();
		say("did", l->name, n);
		_exit(0);
	}
	for (int i = 1; i < l->threads; i++)
		if (pthread_create(&t, NULL, run_for_ever, (void *)(uintptr_t)l))
			_exit(1);
	run_for_ever((void *)(uintptr_t)l);
	_exit(0);
}

static void tell_steal(void)
{
	unsigned long long steal = 0;
	char line[32];
	FILE *f = fopen("/proc/stat", "r");
	int len;

	if (!f || fscanf(f, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &steal) != 1)
		exit(1);
	fclose(f);
	len = snprintf(line, sizeof(line), "steal %llu\n", steal);
	if (write(1, line, (size_t)len) != len)
		exit(1);
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static bool another_line(void)
{
	struct pollfd in = {.fd = 0, .events = POLLIN};

	return poll(&in, 1, 0) > 0;
}

static void count_while(const char *what)
{
	if (!strcmp(what, "sleep")) {
		usleep(SLEEP_US);
	} else if (!strcmp(what, "port")) {
		for (int i = 0; i < ROUND; i++)
			load_port();
	} else {
		say("counting", "", 0);
		while (!another_line())
			load_user();
	}
}

/* On CPU 0, as a whole: what it does when this program sleeps is counted as well. */
static int open_count(unsigned long long event, unsigned long long period)
{
	struct perf_event_attr a = {
		.size = sizeof(a),
		.type = event ? PERF_TYPE_RAW : PERF_TYPE_HARDWARE,
		.config = event ? event : PERF_COUNT_HW_CPU_CYCLES,
		.sample_period = period,
		.sample_type = PERF_SAMPLE_IP,
		.disabled = 1,
	};
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	return (int)syscall(SYS_perf_event_open, &a, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
}

/* How many are in the ring, which is never so full that it begins anew. */
static unsigned count_samples(const struct perf_event_mmap_page *ring)
{
	const char *data = (const char *)ring + ring->data_offset;
	unsigned n = 0;

	for (unsigned long long at = 0; at < ring->data_head;) {
		const struct perf_event_header *h = (const void *)(data + at);

		n += h->type == PERF_RECORD_SAMPLE;
		at += h->size;
	}
	return n;
}

static void tell_count(unsigned long long event, unsigned long long period, const char *what)
{
	int fd = open_count(event, period), len;
	struct perf_event_mmap_page *ring;
	long long t = 0, n = fd < 0 ? -errno : 0;
	unsigned samples = 0;
	char line[96];

	if (fd >= 0) {
		ring = mmap(NULL, (1 + RING_PAGES) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			    0);
		t = now_ns();
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		count_while(what);
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		t = now_ns() - t;
		if (ring == MAP_FAILED || read(fd, &n, sizeof(n)) != sizeof(n))
			exit(1);
		samples = count_samples(ring);
		munmap(ring, (1 + RING_PAGES) * 4096);
		close(fd);
	}
	len = snprintf(line, sizeof(line), "count %lld %u %lld\n", n, samples, t);
	if (len > 0 && write(1, line, (size_t)len) != len)
		exit(1);
}

static void stop(pid_t *running)
{
	if (*running > 0) {
		kill(*running, SIGKILL);
		waitpid(*running, NULL, 0);
	}
	*running = 0;
}

static void tell_symbol(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	unsigned long long addr = 0, at;
	char line[256], found[128], answer[160];
	int len;

	while (f && !addr && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %127s", &at, found) == 2 && strcmp(found, name) == 0)
			addr = at;
	if (f)
		fclose(f);
	len = snprintf(answer, sizeof(answer), "symbol %s %llx\n", name, addr);
	if (len > 0 && write(1, answer, (size_t)len) != len)
		_exit(1);
}

/* One at a time: it waits for the one before. */
static void start_shell(void)
{
	static pid_t shell;

	if (shell > 0)
		waitpid(shell, NULL, 0);
	shell = fork();
	if (shell == 0) {
		execl("/bin/busybox", "busybox", "sh", "/shell", NULL);
		_exit(127);
	}
	say("on", "shell", 0);
}

static void obey(char *line, pid_t *running)
{
	unsigned long long event, period;
	char name[16] = "";
	long n = 0;

	if (!strcmp(line, "ping")) {
		say("pong", "", 0);
	} else if (!strcmp(line, "stop")) {
		stop(running);
		say("off", "", 0);
	} else if (sscanf(line, "symbol %15s", name) == 1) {
		tell_symbol(name);
	} else if (sscanf(line, "count %llx %llu %15s", &event, &period, name) == 3) {
		tell_count(event, period, name);
	} else if (!strcmp(line, "shell")) {
		start_shell();
	} else if (!strcmp(line, "steal")) {
		tell_steal();
	} else if (!strcmp(line, "end")) {
		stop(running);
		reboot(RB_POWER_OFF);
	} else if (sscanf(line, "load %15s %ld", name, &n) >= 1) {
		stop(running);
		for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
			if (!strcmp(loads[i].name, name)) {
				say("on", name, 0);
				*running = start(&loads[i], n);
				return;
			}
		say("unknown", name, 0);
	}
}

int main(void)
{
	struct termios t;
	pid_t running = 0;
	char line[128];

	if (!tcgetattr(0, &t)) { /* no echo, no CR */
		cfmakeraw(&t);
		tcsetattr(0, TCSANOW, &t);
	}
	say("ready", "", 0);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\r\n")] = '\0';
		obey(line, &running);
	}
	return 1;
}
