// SPDX-License-Identifier: GPL-2.0-only
/* ftrace instances (trace_instance.h). */
#include "trace_instance.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

#define PREFIX "kvmtop-"
#define KB_MOST 16384
#define KB_LEAST 256
#define KB_ALL (256 << 10)
#define BUSY_TRIES 200 /* for two seconds */

__attribute__((format(printf, 4, 5))) static int say(int rc, char *err, size_t size,
						     const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, size, fmt, ap);
	va_end(ap);
	return rc;
}

/* flags: O_TRUNC, or 0 to add to what is there. */
static int put(int dir, const char *file, const char *text, int flags)
{
	int fd = openat(dir, file, O_WRONLY | O_CLOEXEC | flags), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

int trace_instance_set(const struct trace_instance *i, const char *file, const char *text)
{
	return put(i->fd, file, text, O_TRUNC);
}

unsigned trace_instance_kb(long ncpus)
{
	long kb = ncpus > 0 ? KB_ALL / ncpus : KB_LEAST;

	return kb > KB_MOST ? KB_MOST : kb < KB_LEAST ? KB_LEAST : (unsigned)kb;
}

int trace_instance_event(const struct trace_instance *i, const char *event)
{
	char path[100];

	snprintf(path, sizeof(path), "events/%s/enable", event);
	return put(i->fd, path, "1", O_TRUNC);
}

/* ---- only these threads ---- */

static int add_threads(const struct trace_instance *i, pid_t pid)
{
	char path[40], text[24];
	struct dirent *d;
	int rc = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!rc && (d = readdir(dir))) {
		if (d->d_name[0] == '.')
			continue;
		snprintf(text, sizeof(text), "%.20s\n", d->d_name);
		rc = put(i->fd, "set_event_pid", text, 0);
	}
	closedir(dir);
	return rc;
}

int trace_instance_only(const struct trace_instance *i, pid_t pid)
{
	/* First, so that no thread slips through that starts between. */
	int rc = trace_instance_set(i, "options/event-fork", "1");

	if (rc && rc != -ENOENT)
		return rc;
	return add_threads(i, pid);
}

/* ---- what was traced ---- */

int64_t trace_instance_copy(const struct trace_instance *i, int to)
{
	int from = openat(i->fd, "trace", O_RDONLY | O_CLOEXEC);
	char buf[65536];
	int64_t all = 0;
	ssize_t n;

	if (from < 0)
		return -errno;
	while (all >= 0 && (n = read(from, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			all = -errno;
		for (ssize_t at = 0, w; n > 0 && at < n && all >= 0; at += w) {
			w = write(to, buf + at, (size_t)(n - at));
			if (w < 0 && errno == EINTR)
				w = 0;
			all = w < 0 ? -errno : all + w;
		}
	}
	close(from);
	return all;
}

/* Of one CPU: "overrun: 12", "dropped events: 0". */
static uint64_t lost_of(int dir, const char *cpu)
{
	static const char *const counts[] = {"overrun: ", "commit overrun: ", "dropped events: "};
	char path[300], text[1024], *rest;
	uint64_t lost = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "per_cpu/%s/stats", cpu);
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
			if (strncmp(line, counts[k], strlen(counts[k])) == 0)
				lost += strtoull(line + strlen(counts[k]), NULL, 10);
	return lost;
}

uint64_t trace_instance_lost(const struct trace_instance *i)
{
	int fd = openat(i->fd, "per_cpu", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	uint64_t lost = 0;
	struct dirent *d;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	while ((d = readdir(dir)))
		if (strncmp(d->d_name, "cpu", 3) == 0)
			lost += lost_of(i->fd, d->d_name);
	closedir(dir);
	return lost;
}

/* ---- there and gone ---- */

/* Elsewhere a process that is not there for us may well be. (The inode is the kernel's ABI.) */
static bool sees_all_processes(void)
{
	char link[40];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

	link[n > 0 ? n : 0] = '\0';
	return strcmp(link, "pid:[4026531836]") == 0;
}

/* It cannot go while anybody has one of its files open, who often only looks for a moment. */
static void take_away(int instances, const char *name)
{
	static const struct timespec moment = {.tv_nsec = 10 * NS_PER_MS};

	for (int i = 0; i < BUSY_TRIES; i++) {
		if (!unlinkat(instances, name, AT_REMOVEDIR) || errno != EBUSY)
			return;
		nanosleep(&moment, NULL);
	}
}

/* Those of processes that are no more: a kvmtop that was killed could not. */
static void sweep(int instances)
{
	int fd = openat(instances, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		int pid = 0, end = 0;

		if (sscanf(d->d_name, PREFIX "%d-%n", &pid, &end) < 1 || !end || pid <= 0)
			continue;
		if (kill(pid, 0) < 0 && errno == ESRCH)
			take_away(instances, d->d_name);
	}
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

void trace_instance_remove(struct trace_instance *i)
{
	if (i->fd >= 0) {
		trace_instance_set(i, "tracing_on", "0");
		close(i->fd);
		take_away(i->instances, i->name);
	}
	if (i->instances >= 0)
		close(i->instances);
	i->fd = i->instances = -1;
}

static int open_instances(const char *tracefs, char *err, size_t size)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/instances", tracefs);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	return say(-errno, err, size, "%s: %s%s", path, strerror(errno),
		   errno == EACCES || errno == EPERM ? ": run it as root" : "");
}

int trace_instance_make(const char *tracefs, const char *what, struct trace_instance *out,
			char *err, size_t size)
{
	struct trace_instance i = {.fd = -1};
	int rc;

	*out = i;
	out->instances = -1;
	i.instances = open_instances(tracefs, err, size);
	if (i.instances < 0)
		return i.instances;
	if (sees_all_processes())
		sweep(i.instances);
	snprintf(i.name, sizeof(i.name), PREFIX "%d-%s", getpid(), what);
	if (mkdirat(i.instances, i.name, 0700) < 0) {
		rc = say(-errno, err, size, "%s/instances/%s cannot be made: %s%s", tracefs, i.name,
			 strerror(errno), errno == ENOMEM ? ": its buffers need memory" : "");
		trace_instance_remove(&i);
		return rc;
	}
	i.fd = openat(i.instances, i.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = i.fd < 0 ? -errno : trace_instance_set(&i, "tracing_on", "0");
	if (!rc)
		rc = trace_instance_set(&i, "trace_clock", "x86-tsc");
	if (rc) {
		say(rc, err, size, "%s/instances/%s: %s%s", tracefs, i.name, strerror(-rc),
		    rc == -EINVAL ? ": this kernel has no trace clock x86-tsc" : "");
		trace_instance_remove(&i);
		return rc;
	}
	*out = i;
	return 0;
}
