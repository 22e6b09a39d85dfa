// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ways to the kvm tracepoints, and what blocks them.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hoststat.h"
#include "kvm_access.h"
#include "kvm_format.h"
#include "kvm_names.h"
#include "perf_rings.h"
#include "sysroot.h"

#define FORMAT_MAX 65536
#define CPUS_MAX 65536

static const char *const tracefs_dirs[] = {"sys/kernel/tracing", "sys/kernel/debug/tracing"};

/* ---- rights ---- */

static bool has_cap(const struct __user_cap_data_struct *data, unsigned cap)
{
	return data[cap / 32].effective & 1u << cap % 32;
}

void kvm_rights_read(struct kvm_rights *r)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	struct rlimit l;

	*r = (struct kvm_rights){.root = geteuid() == 0};
	if (!syscall(SYS_capget, &head, data)) {
		r->perfmon = has_cap(data, CAP_PERFMON) || has_cap(data, CAP_SYS_ADMIN);
		r->ipc_lock = has_cap(data, CAP_IPC_LOCK);
	}
	if (!getrlimit(RLIMIT_NOFILE, &l))
		r->nofile = l.rlim_max;
	if (!getrlimit(RLIMIT_MEMLOCK, &l))
		r->memlock = l.rlim_cur;
}

/* ---- tracefs ---- */

static int can_list(const struct sysroot *root, const char *path)
{
	DIR *d = sysroot_opendir(root, path);

	if (!d)
		return -errno;
	closedir(d);
	return 0;
}

const char *kvm_tracefs(const struct sysroot *root, int *err)
{
	char path[64];

	*err = -ENOENT;
	for (size_t i = 0; i < sizeof(tracefs_dirs) / sizeof(tracefs_dirs[0]); i++) {
		int rc;

		snprintf(path, sizeof(path), "%s/events", tracefs_dirs[i]);
		rc = can_list(root, path);
		if (!rc) {
			*err = 0;
			return tracefs_dirs[i];
		}
		if (rc != -ENOENT && rc != -ENOTDIR)
			*err = rc;
	}
	return NULL;
}

static int load_one(const struct sysroot *root, const char *tracefs, unsigned event, char *buf,
		    struct kvm_format *f, struct kvm_names *names)
{
	const struct kvm_event_name *e = &kvm_events[event];
	ssize_t n = sysroot_readf(root, buf, FORMAT_MAX, "%s/events/%s/%s/format", tracefs,
				  e->system, e->event);

	if (n < 0)
		return (int)n;
	if (names && (e->type == EV_EXIT || e->type == EV_USEREXIT))
		(void)kvm_names_load(names, e->event, buf, (size_t)n); /* else the built-in ones */
	return kvm_format_load(f, event, buf, (size_t)n);
}

int kvm_load_formats(const struct sysroot *root, const char *tracefs, struct kvm_format *f,
		     struct kvm_names *names)
{
	char *buf = malloc(FORMAT_MAX);
	int found = 0, err = -ENOENT;

	if (!buf)
		return -ENOMEM;
	for (unsigned i = 0; i < KVM_EVENTS; i++) {
		int rc = load_one(root, tracefs, i, buf, f, names);

		if (rc > 0)
			found++;
		else if (rc != -ENOENT)
			err = rc;
	}
	free(buf);
	return found ? found : err;
}

/* ---- CPUs ---- */

#define ONLINE "sys/devices/system/cpu/online"
#define LIST_MAX 8192

struct cpu_list {
	int *cpu, n;
};

static void add_cpu(void *ctx, int cpu)
{
	struct cpu_list *l = ctx;

	if (l->n < CPUS_MAX && (!l->n || cpu > l->cpu[l->n - 1])) /* in order, each once */
		l->cpu[l->n++] = cpu;
}

static int parse_cpus(const char *text, ssize_t n, int **cpu)
{
	struct cpu_list l = {0};
	int rc;

	*cpu = NULL;
	if (n < 0)
		return (int)n;
	/* Asked at each tick: what is not used of it is not touched either. */
	l.cpu = malloc(CPUS_MAX * sizeof(*l.cpu));
	if (!l.cpu)
		return -ENOMEM;
	rc = hoststat_cpulist(text, (size_t)n, CPUS_MAX, add_cpu, &l);
	if (rc < 0 || !l.n) {
		free(l.cpu);
		return rc < 0 ? rc : -EBADMSG;
	}
	*cpu = l.cpu;
	return l.n;
}

int kvm_online_cpus(const struct sysroot *root, int **cpu)
{
	char text[LIST_MAX];

	return parse_cpus(text, sysroot_read(root, ONLINE, text, sizeof(text)), cpu);
}

int kvm_follow_cpus(const struct sysroot *root, int *held, struct perf_rings *rings, int64_t now,
		    void (*unwatched)(void *ctx, int cpu, int64_t since), void *ctx)
{
	char text[LIST_MAX];
	int *cpu, n, rc;

	if (*held < 0)
		*held = sysroot_openat(root, ONLINE, O_RDONLY);
	n = parse_cpus(text, *held < 0 ? *held : fd_read_once(*held, text, sizeof(text)), &cpu);
	if (n < 0)
		return n;
	rc = perf_rings_set_cpus(rings, cpu, (size_t)n, now, unwatched, ctx);
	free(cpu);
	return rc;
}

/* ---- why not ---- */

static void __attribute__((format(printf, 3, 4)))
say(struct kvm_reason *out, const char *mend, const char *why, ...)
{
	va_list ap;

	va_start(ap, why);
	vsnprintf(out->why, sizeof(out->why), why, ap);
	va_end(ap);
	snprintf(out->mend, sizeof(out->mend), "%s", mend);
}

static bool locked_down(const struct sysroot *root)
{
	char buf[128];

	return sysroot_read(root, "sys/kernel/security/lockdown", buf, sizeof(buf)) > 0 &&
	       strstr(buf, "[confidentiality]");
}

static int paranoid(const struct sysroot *root)
{
	char buf[32];

	if (sysroot_read(root, "proc/sys/kernel/perf_event_paranoid", buf, sizeof(buf)) <= 0)
		return 2; /* the kernel's own default */
	return atoi(buf);
}

static bool why_no_tracefs(const struct sysroot *root, const struct kvm_rights *rights,
			   struct kvm_reason *out)
{
	char path[80];
	int err;
	const char *dir = kvm_tracefs(root, &err);

	if (!dir && err == -ENOENT) {
		say(out, "mount -t tracefs tracefs /sys/kernel/tracing", "tracefs is not mounted");
		return true;
	}
	if (!dir && (err == -EMFILE || err == -ENFILE))
		return false; /* that is not about tracefs */
	if (!dir) {
		say(out, "sudo kvmtop", "tracefs cannot be read: %s%s", strerror(-err),
		    rights->root ? "" : " (not root)");
		return true;
	}
	snprintf(path, sizeof(path), "%s/events/kvm", dir);
	err = can_list(root, path);
	if (err == -ENOENT) {
		say(out, "modprobe kvm-intel (or kvm-amd)",
		    "no KVM: the kernel has no kvm events, its module is not loaded");
		return true;
	}
	if (err) {
		say(out, "sudo kvmtop", "the kvm events cannot be read: %s", strerror(-err));
		return true;
	}
	return false;
}

static void why_no_perf(const struct sysroot *root, const struct kvm_rights *rights, int err,
			struct kvm_reason *out)
{
	if (err == -EMFILE || err == -ENFILE)
		say(out, "ulimit -n (hard), or LimitNOFILE= of the service",
		    "not enough file descriptors: the limit is %lu", rights->nofile);
	else if (err == -ENOBUFS)
		say(out, "ulimit -l unlimited, CAP_IPC_LOCK, or sysctl kernel.perf_event_mlock_kb",
		    "not even rings of %u KiB may be locked: RLIMIT_MEMLOCK is %lu KiB",
		    RING_MIN >> 10, rights->memlock >> 10);
	else if (!rights->perfmon)
		say(out, "sudo kvmtop, or give it CAP_PERFMON",
		    "perf_event_open: %s: no CAP_PERFMON, and kernel.perf_event_paranoid is %d",
		    strerror(-err), paranoid(root));
	else if (err == -EPERM || err == -EACCES)
		say(out, "run it in the host's own namespaces, without a seccomp filter",
		    "perf_event_open: %s although the capability is there: a container's filter?",
		    strerror(-err));
	else if (err == -ENOSYS || err == -EOPNOTSUPP)
		say(out, "", "this kernel has no perf events (CONFIG_PERF_EVENTS)");
	else
		say(out, "", "perf_event_open: %s", strerror(-err));
}

bool kvm_no_events(const struct sysroot *root, struct kvm_reason *out)
{
	*out = (struct kvm_reason){0};
	if (sysroot_has_events(root))
		return false;
	if (sysroot_is_foreign(root))
		say(out, MEND_PID_NAMESPACE,
		    "a container's pid namespace: the events' thread numbers are others than ours");
	else
		say(out, "run it without --root, or mount the host's /proc there",
		    "fixture: %s is no live host's root", sysroot_dir(root));
	return true;
}

static bool why_locked_down(const struct sysroot *root, struct kvm_reason *out)
{
	*out = (struct kvm_reason){0};
	if (!locked_down(root))
		return false;
	say(out, "boot with lockdown=integrity",
	    "kernel lockdown is \"confidentiality\": it forbids perf and tracing to root "
	    "too");
	return true;
}

static bool why_refused(const struct sysroot *root, const struct kvm_rights *rights, int err,
			struct kvm_reason *out)
{
	if (!err && !rights->perfmon && paranoid(root) > -1)
		err = -EACCES;
	if (err)
		why_no_perf(root, rights, err, out);
	return err != 0;
}

bool kvm_why_not(const struct sysroot *root, const struct kvm_rights *rights, int err,
		 struct kvm_reason *out)
{
	return why_locked_down(root, out) || why_no_tracefs(root, rights, out) ||
	       why_refused(root, rights, err, out);
}

bool kvm_why_no_perf(const struct sysroot *root, const struct kvm_rights *rights, int err,
		     struct kvm_reason *out)
{
	return why_locked_down(root, out) || why_refused(root, rights, err, out);
}

void kvm_why_halved(const struct kvm_rights *rights, size_t bytes, struct kvm_reason *out)
{
	say(out, "ulimit -l unlimited, or CAP_IPC_LOCK",
	    "rings are %zu KiB each, events may be lost: more may not be locked (RLIMIT_MEMLOCK is "
	    "%lu KiB)",
	    bytes >> 10, rights->memlock >> 10);
}

bool kvm_why_partial(const struct sysroot *root, const struct kvm_rights *rights, unsigned ncpus,
		     size_t bytes, unsigned long fds, struct kvm_reason *out)
{
	char buf[32];
	unsigned long shared_kb = 0;

	*out = (struct kvm_reason){0};
	if (fds > rights->nofile) {
		say(out, "ulimit -n (hard), or LimitNOFILE= of the service",
		    "all kinds of events want %lu file descriptors, the limit is %lu", fds,
		    rights->nofile);
		return true;
	}
	if (sysroot_read(root, "proc/sys/kernel/perf_event_mlock_kb", buf, sizeof(buf)) > 0)
		shared_kb = strtoul(buf, NULL, 10);
	if (rights->ipc_lock ||
	    ncpus * (unsigned long)bytes <= rights->memlock + ncpus * (shared_kb << 10))
		return false;
	say(out, "ulimit -l unlimited, or CAP_IPC_LOCK",
	    "rings of %zu KiB may not be locked: RLIMIT_MEMLOCK is %lu KiB; they will be halved, "
	    "down to %u KiB",
	    bytes >> 10, rights->memlock >> 10, RING_MIN >> 10);
	return true;
}
