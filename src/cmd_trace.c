// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmtop trace VM [-- COMMAND]: traces the host's side of one VM, and by the command the guest's,
 * both by the TSC, and merges the two; a folder keeps the traces and what a later merge must know.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "commands.h"
#include "guest_dir.h"
#include "inventory.h"
#include "kvm_access.h"
#include "options.h"
#include "stream.h"
#include "sysroot.h"
#include "text.h"
#include "trace_guest.h"
#include "trace_instance.h"
#include "tracetext.h"
#include "tsc_debugfs.h"
#include "vm_find.h"

#define SECONDS 5.0
/* Without a command for the guest: time to start the script there by hand. */
#define SECONDS_BY_HAND 60.0
/*
 * A guest that is busy takes its time to begin and to print. What does not end by itself is a
 * command that waits for a password, say.
 */
#define GUEST_MORE_NS (300 * NS_PER_S)

/* The host's half: what leaves guest mode and why, and who else runs on the vCPUs' CPUs. */
static const char *const events[] = {
	"kvm/kvm_entry",       "kvm/kvm_exit",	     "kvm/kvm_userspace_exit", "kvm/kvm_pio",
	"kvm/kvm_mmio",	       "kvm/kvm_msr",	     "kvm/kvm_hypercall",      "kvm/kvm_inj_virq",
	"kvm/kvm_vcpu_wakeup", "sched/sched_switch", "sched/sched_waking",
};

struct job {
	const struct options *o;
	struct vm_find *find;
	const struct inv_vm *vm;
	char shown[200]; /* the VM's name, escaped */
	char dir_name[NAME_MAX + 40];
	const char *path;
	char path_shown[PATH_MAX]; /* escaped */
	int dir; /* the folder of the results, -1 */
	struct trace_instance host, tsc;
	int sigfd;
	sigset_t before; /* the signal mask that was found */
	double seconds;
	pid_t guest; /* 0: none, or it ended */
	int guest_status;
	bool stopped; /* by a signal */
	char err[400];
};

__attribute__((format(printf, 3, 4))) static int fail(struct job *j, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(j->err, sizeof(j->err), fmt, ap);
	va_end(ap);
	return rc;
}

/* ---- before ---- */

static int find(struct job *j)
{
	const char *name = j->o->words[0];
	unsigned n = 0;
	int rc = vm_find_open(NULL, &j->find);

	text_escape(j->shown, sizeof(j->shown), name);
	if (rc)
		return fail(j, rc, "VMs cannot be looked for: %s", strerror(-rc));
	j->vm = vm_find(j->find, name, &n);
	if (j->vm)
		return 0;
	if (n)
		return fail(j, -EEXIST,
			    "'%s': %u VMs are called so: give its UUID or its process's number",
			    j->shown, n);
	return fail(j, -ENOENT,
		    "'%s': no VM of this name, UUID or process runs here: see kvmtop --batch -n 1",
		    j->shown);
}

/* "kvmtop-trace-web01-20261129-231500", where no other is given. */
static int make_folder(struct job *j)
{
	char name[NAME_MAX + 1], when[32] = "";
	time_t now = time(NULL);
	struct tm tm;

	j->path = j->o->output;
	if (!j->path) {
		if (guest_dir_encode(j->vm->name, name, sizeof(name)) < 0)
			snprintf(name, sizeof(name), "%d", j->vm->pid);
		if (localtime_r(&now, &tm))
			strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &tm);
		snprintf(j->dir_name, sizeof(j->dir_name), "kvmtop-trace-%.200s-%s", name, when);
		j->path = j->dir_name;
	}
	text_escape(j->path_shown, sizeof(j->path_shown), j->path);
	if (mkdir(j->path, 0700) < 0)
		return fail(j, -errno, "%s: %s%s", j->path_shown, strerror(errno),
			    errno == EEXIST ? ": give another folder with -o" : "");
	j->dir = open(j->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (j->dir < 0)
		return fail(j, -errno, "%s: %s", j->path_shown, strerror(errno));
	return 0;
}

static int catch_signals(struct job *j)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &j->before);
	j->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return j->sigfd < 0 ? fail(j, -errno, "signalfd: %s", strerror(errno)) : 0;
}

static const char *tracefs(struct job *j, char *buf, size_t size)
{
	int err;
	const char *dir = kvm_tracefs(vm_find_root(j->find), &err);

	if (!dir) {
		fail(j, err,
		     err == -ENOENT ? "tracefs is not mounted: mount -t tracefs tracefs "
				      "/sys/kernel/tracing"
				    : "tracefs cannot be read: %s: run it as root",
		     strerror(-err));
		return NULL;
	}
	snprintf(buf, size, "/%s", dir);
	return buf;
}

/* Offsets have a buffer of their own: they are rare, and what is frequent would overwrite them. */
static int make_instances(struct job *j)
{
	char buf[100], kb[16];
	const char *dir = tracefs(j, buf, sizeof(buf));
	size_t opened = 0;
	int rc;

	if (!dir)
		return -ENOENT;
	rc = trace_instance_make(dir, "host", &j->host, j->err, sizeof(j->err));
	if (!rc)
		rc = trace_instance_make(dir, "tsc", &j->tsc, j->err, sizeof(j->err));
	if (rc)
		return rc;
	snprintf(kb, sizeof(kb), "%u", trace_instance_kb(sysconf(_SC_NPROCESSORS_ONLN)));
	trace_instance_set(&j->host, "buffer_size_kb", kb); /* else what it has */
	trace_instance_set(&j->host, "options/record-tgid", "1");
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		opened += trace_instance_event(&j->host, events[i]) == 0;
	if (!opened)
		return fail(
			j, -ENOENT,
			"no KVM events: its module is not loaded: modprobe kvm-intel (or kvm-amd)");
	trace_instance_event(&j->tsc, "kvm/kvm_write_tsc_offset");
	rc = trace_instance_only(&j->host, j->vm->pid);
	if (!rc)
		rc = trace_instance_only(&j->tsc, j->vm->pid);
	if (rc)
		return fail(j, rc, "the threads of '%s' cannot be traced alone: %s", j->shown,
			    strerror(-rc));
	return 0;
}

/* ---- meanwhile ---- */

static int new_file(struct job *j, const char *name)
{
	int fd = openat(j->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? fail(j, -errno, "%s/%s: %s", j->path_shown, name, strerror(errno)) : fd;
}

static int start_guest(struct job *j)
{
	int out = new_file(j, "guest");

	if (out < 0)
		return out;
	j->guest = trace_guest_start(j->o->words + 1, j->o->nwords - 1, j->seconds, out);
	close(out);
	if (j->guest < 0) {
		int rc = j->guest;

		j->guest = 0;
		return fail(j, rc, "the guest's command cannot be started: %s", strerror(-rc));
	}
	return 0;
}

/* For a guest that no command leads into: the script, and what to do with it. */
static int keep_script(struct job *j)
{
	int fd = new_file(j, "guest.sh");
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	char script[PATH_MAX], word[4 * PATH_MAX];
	int rc;

	if (!f)
		return fd < 0 ? fd
			      : fail(j, -errno, "%s/guest.sh: %s", j->path_shown, strerror(errno));
	errno = 0;
	trace_guest_script(f, j->o->for_s > 0 ? j->o->for_s : SECONDS);
	rc = stream_close(f);
	if (rc)
		return fail(j, rc, "%s/guest.sh: %s", j->path_shown, strerror(-rc));
	snprintf(script, sizeof(script), "%s/guest.sh", j->path);
	text_shell_word(word, sizeof(word), script);
	fprintf(stderr,
		"kvmtop: tracing '%s' on the host for %g s, ^C ends it; meanwhile run in the "
		"guest, as "
		"root: sh < %s > GUEST_TRACE\n",
		j->shown, j->seconds, word);
	return 0;
}

/* Signals and children; false: it is over. */
static bool look(struct job *j)
{
	struct signalfd_siginfo si;

	while (read(j->sigfd, &si, sizeof(si)) == sizeof(si))
		if (si.ssi_signo != SIGCHLD)
			j->stopped = true;
	if (j->guest && waitpid(j->guest, &j->guest_status, WNOHANG) == j->guest) {
		j->guest = 0;
		return false;
	}
	return !j->stopped;
}

/* The guest's half begins later than the host's and ends before it. */
static void wait_for_end(struct job *j)
{
	int64_t end = clock_mono_ns() + (int64_t)(j->seconds * 1e9), left;
	struct pollfd p = {.fd = j->sigfd, .events = POLLIN};

	if (j->guest)
		end += GUEST_MORE_NS;
	while (look(j) && (left = end - clock_mono_ns()) > 0)
		poll(&p, 1, (int)(left / NS_PER_MS) + 1);
}

/* ---- after ---- */

static int keep_trace(struct job *j, const struct trace_instance *i, const char *name)
{
	int fd = new_file(j, name), rc = 0;
	int64_t n;

	if (fd < 0)
		return fd;
	n = trace_instance_copy(i, fd);
	if (n < 0)
		rc = fail(j, (int)n, "%s/%s: %s", j->path_shown, name, strerror((int)-n));
	close(fd);
	return rc;
}

/* As `kvmtop merge --tsc` reads it. */
static int keep_offsets(struct job *j)
{
	int fd = new_file(j, "offsets"), rc;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f)
		return fd < 0 ? fd
			      : fail(j, -errno, "%s/offsets: %s", j->path_shown, strerror(errno));
	fprintf(f, "# TSC offsets of the vCPUs (KVM's ids) when the trace ended: kvmtop merge "
		   "--tsc\n");
	for (size_t i = 0; i < j->vm->nvcpu; i++) {
		const struct inv_vcpu *v = j->vm->vcpu[i];
		struct tsc_scale s;
		uint64_t offset;

		if (tsc_debugfs_read(vm_find_root(j->find), j->vm->key, v->kvm_id, &offset, &s) < 0)
			continue;
		fprintf(f, "vcpu%d %" PRId64, v->kvm_id, (int64_t)offset);
		if (s.ratio)
			fprintf(f, " %" PRIu64 " %u", s.ratio, s.frac_bits);
		fputc('\n', f);
	}
	rc = stream_close(f);
	return rc ? fail(j, rc, "%s/offsets: %s", j->path_shown, strerror(-rc)) : 0;
}

static int keep(struct job *j)
{
	uint64_t lost;
	int rc;

	trace_instance_set(&j->host, "tracing_on", "0");
	trace_instance_set(&j->tsc, "tracing_on", "0");
	rc = keep_trace(j, &j->host, "host");
	if (!rc)
		rc = keep_trace(j, &j->tsc, "epochs");
	if (!rc)
		rc = keep_offsets(j);
	lost = trace_instance_lost(&j->host);
	if (!rc && lost)
		fprintf(stderr,
			"kvmtop: the host's trace is without its %" PRIu64
			" oldest events, there was no room: trace for less long, --for %g\n",
			lost, j->seconds / 2);
	return rc;
}

/* Are there events in it? */
static bool has_events(const struct job *j, const char *name)
{
	int fd = openat(j->dir, name, O_RDONLY | O_CLOEXEC);
	struct tracetext_event e;
	struct tracetext *t = NULL;
	bool any = false;

	if (fd >= 0 && !tracetext_open(fd, 0, &t))
		any = tracetext_next(t, &e) > 0;
	tracetext_close(t);
	if (fd >= 0)
		close(fd);
	return any;
}

/* The words of a merge of what is in the folder; for cmd_merge(). */
struct words {
	struct merge_word word[64];
	size_t n;
	char text[4 * PATH_MAX];
	size_t used;
};

__attribute__((format(printf, 3, 4))) static void word(struct words *w, char what, const char *fmt,
						       ...)
{
	size_t room = sizeof(w->text) - w->used;
	va_list ap;
	int n;

	if (w->n == sizeof(w->word) / sizeof(w->word[0]))
		return;
	va_start(ap, fmt);
	n = vsnprintf(w->text + w->used, room, fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= room)
		return;
	w->word[w->n++] = (struct merge_word){what, w->text + w->used};
	w->used += (size_t)n + 1;
}

static void merge_words(const struct job *j, const char *guest, struct words *w)
{
	bool plain = !strpbrk(j->vm->name, "=/");

	word(w, 'H', "%s/host", j->path);
	word(w, 'G', "%s%s%s", plain ? j->vm->name : "", plain ? "=" : "", guest);
	word(w, 't', "%s/offsets", j->path);
	if (has_events(j, "epochs"))
		word(w, 't', "%s/epochs", j->path);
	for (size_t i = 0; i < j->vm->nvcpu; i++)
		if (j->vm->vcpu[i]->index >= 0 && j->vm->vcpu[i]->index != j->vm->vcpu[i]->kvm_id)
			word(w, 'm', "%d=%d", j->vm->vcpu[i]->index, j->vm->vcpu[i]->kvm_id);
}

/* What the user may type, for a shell. */
static void say_command(FILE *to, const struct words *w)
{
	fputs("kvmtop merge", to);
	for (size_t i = 0; i < w->n; i++) {
		const char *option = w->word[i].what == 'H'   ? "-H"
				     : w->word[i].what == 'G' ? "-G"
				     : w->word[i].what == 't' ? "--tsc"
							      : "--map";
		char shown[4 * PATH_MAX];

		text_shell_word(shown, sizeof(shown), w->word[i].arg);
		fprintf(to, " %s %s", option, shown);
	}
	fputc('\n', to);
}

/* In a process of its own, whose standard output is the file; -errno, or its status. */
static int run_merge(struct job *j, struct words *w, int to)
{
	struct options o = *j->o;
	int status = 0;
	pid_t pid;

	o.merge = (struct merge_words){w->word, w->n};
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		sigprocmask(SIG_SETMASK, &j->before, NULL);
		if (dup2(to, STDOUT_FILENO) < 0)
			_exit(STATUS_FAILED);
		_exit(cmd_merge(&o));
	}
	if (pid < 0)
		return -errno;
	if (child_wait(pid, j->sigfd, -1, &status))
		child_end(pid, j->sigfd, &status);
	return status;
}

static int merge(struct job *j, struct words *w)
{
	int fd = new_file(j, "merged"), rc;

	if (fd < 0)
		return fd;
	rc = run_merge(j, w, fd);
	close(fd);
	if (rc) {
		unlinkat(j->dir, "merged", 0);
		return fail(j, -EIO, "%s: the traces are there, but could not be merged",
			    j->path_shown);
	}
	printf("%s/merged\n", j->path_shown);
	return 0;
}

static int finish_guest(struct job *j)
{
	int st;

	if (j->guest) {
		child_end(j->guest, j->sigfd, &j->guest_status);
		j->guest = 0;
	}
	st = j->guest_status;
	if (has_events(j, "guest"))
		return 0;
	if (WIFSIGNALED(st))
		return fail(j, -EIO, "'%s': the guest's command was ended by signal %d", j->shown,
			    WTERMSIG(st));
	if (WEXITSTATUS(st))
		return fail(
			j, -EIO,
			"'%s': the guest's command ended with status %d and printed no trace; the "
			"host's is in %s",
			j->shown, WEXITSTATUS(st), j->path_shown);
	return fail(j, -EIO,
		    "'%s': the guest's command printed no trace: it must run a shell in the guest, "
		    "as root; the host's is in %s",
		    j->shown, j->path_shown);
}

static int run(struct job *j)
{
	bool by_command = j->o->nwords > 1;
	struct words w = {.n = 0};
	char guest[PATH_MAX];
	int rc;

	trace_instance_set(&j->tsc, "tracing_on", "1");
	trace_instance_set(&j->host, "tracing_on", "1");
	rc = by_command ? start_guest(j) : keep_script(j);
	if (rc)
		return rc;
	wait_for_end(j);
	rc = keep(j);
	if (by_command) {
		int guest_rc = finish_guest(j);

		rc = rc ? rc : guest_rc;
	}
	if (rc)
		return rc;
	snprintf(guest, sizeof(guest), "%s%s", by_command ? j->path : "GUEST_TRACE",
		 by_command ? "/guest" : "");
	merge_words(j, guest, &w);
	if (by_command)
		return merge(j, &w);
	say_command(stdout, &w);
	return 0;
}

static void clean(struct job *j)
{
	trace_instance_remove(&j->host);
	trace_instance_remove(&j->tsc);
	if (j->dir >= 0)
		close(j->dir);
	if (j->sigfd >= 0)
		close(j->sigfd);
	vm_find_close(j->find);
}

int cmd_trace(const struct options *o)
{
	static const struct trace_instance none = {.instances = -1, .fd = -1};
	static int (*const steps[])(struct job *) = {find, make_instances, make_folder, run};
	struct job j = {.o = o, .dir = -1, .sigfd = -1, .host = none, .tsc = none};
	int rc;

	if (o->nwords < 1) {
		fputs("kvmtop: trace: give the VM, and best a command that runs in it, as in: "
		      "kvmtop "
		      "trace web01 -- ssh root@web01\n",
		      stderr);
		return STATUS_USAGE;
	}
	j.seconds = o->for_s > 0 ? o->for_s : o->nwords > 1 ? SECONDS : SECONDS_BY_HAND;
	rc = catch_signals(&j); /* first: nothing that is made shall stay behind */
	for (size_t i = 0; !rc && i < sizeof(steps) / sizeof(steps[0]); i++)
		rc = look(&j) ? steps[i](&j) : fail(&j, -EINTR, "ended before it began");
	clean(&j);
	if (rc)
		fprintf(stderr, "kvmtop: trace: %s\n", j.err[0] ? j.err : strerror(-rc));
	return rc ? STATUS_FAILED : STATUS_OK;
}
