// SPDX-License-Identifier: GPL-2.0-only
/* What the collector `sched` can have on this host, in words. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "procfs.h"
#include "sched_iter.h"
#include "sched_priv.h"
#include "sysroot.h"

/* A kernel with our patches. */
static bool has_gstime(const struct collector_env *env)
{
	char buf[1024];
	struct proc_stat st;
	ssize_t n = sysroot_read(env->root, "proc/self/stat", buf, sizeof(buf));

	if (n < 0) /* a fixture has no proc/self */
		n = sysroot_read(env->root, "proc/1/stat", buf, sizeof(buf));
	return n >= 0 && procfs_parse_stat(buf, (size_t)n, &st) == 0 &&
	       st.nfields >= PROC_STAT_GSTIME;
}

static void probe_schedstat(const struct collector_env *env, struct probes *out)
{
	char buf[128];
	struct proc_schedstat ss;
	ssize_t n = sysroot_read(env->root, "proc/self/schedstat", buf, sizeof(buf));

	if (n < 0) /* a fixture has no proc/self */
		n = sysroot_read(env->root, "proc/1/schedstat", buf, sizeof(buf));
	if (n >= 0 && procfs_parse_schedstat(buf, (size_t)n, &ss) == 0)
		probe_add(out, "run delay", SOURCE_OK, NULL,
			  "works: steal from field 2 of /proc/<pid>/task/<tid>/schedstat%s",
			  has_gstime(env) ? "; from field 53 of stat (gstime) where threads are "
					    "read from /proc"
					  : "");
	else
		probe_add(out, "run delay",
			  sysroot_is_host(env->root) ? SOURCE_OFF : SOURCE_PARTIAL,
			  "a kernel with CONFIG_SCHED_INFO (all distributions' have it)",
			  "/proc/<pid>/schedstat cannot be read (%s): no steal, CPU in ticks of 10 "
			  "ms",
			  n < 0 ? strerror((int)-n) : "not three numbers");
}

static void probe_quota(const struct collector_env *env, struct probes *out)
{
	/* A controller has one hierarchy: where v1 has cpu, v2 may be there without it. */
	static const char *const files[] = {
		"sys/fs/cgroup/cpu/tasks", "sys/fs/cgroup/cpu,cpuacct/tasks",
		"sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/unified/cgroup.controllers"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = sysroot_openat(env->root, files[i], O_PATH | O_CLOEXEC);

		if (fd < 0)
			continue;
		close(fd);
		probe_add(out, "CPU quota", SOURCE_OK, NULL, "works: cpu.stat of cgroup %s",
			  strstr(files[i], "controllers") ? "v2" : "v1");
		return;
	}
	probe_add(out, "CPU quota", SOURCE_PARTIAL, "mount -t cgroup2 cgroup2 /sys/fs/cgroup",
		  "no cgroup file system below /sys/fs/cgroup: a quota cannot be told from "
		  "competition");
}

#define ONE_PASS "works: one BPF program reads them all in one pass"
#define FROM_FILES "read from /proc, ten times dearer: %s"

/* Without a sink there is time to load the program; else sched_say_iter() tells when it is known.
 */
static void probe_iter(const struct collector_env *env, struct probes *out)
{
	const char *mend = NULL;
	char why[120];

	if (!sysroot_is_live(env->root) || (env->config && env->config->threads_by_proc))
		probe_add(out, "threads", SOURCE_OK, NULL, "works: two files a thread from /proc");
	else if (env->sink)
		return;
	else if (sched_iter_try(why, sizeof(why), &mend))
		probe_add(out, "threads", SOURCE_OK, NULL, ONE_PASS);
	else
		probe_add(out, "threads", SOURCE_PARTIAL, mend, FROM_FILES, why);
}

void sched_say_iter(const struct collector_env *env, const struct sched_iter *it, bool works)
{
	const struct sink *sink = env->sink;
	const char *mend = NULL;
	char why[120], text[PROBE_TEXT];

	if (!sink->source)
		return;
	if (works) {
		sink->source(sink->ctx, "threads", SOURCE_OK, ONE_PASS, NULL);
		return;
	}
	sched_iter_why(it, why, sizeof(why), &mend);
	snprintf(text, sizeof(text), FROM_FILES, why);
	sink->source(sink->ctx, "threads", SOURCE_PARTIAL, text, mend);
}

void sched_probe(const struct collector_env *env, struct probes *out)
{
	probe_iter(env, out);
	probe_schedstat(env, out);
	probe_quota(env, out);
}
