// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads and reads the task iterators; see sched_iter.h.
 *
 * The object file that clang made is part of the program; libbpf fits it to the running kernel. It
 * is opened by every reader anew, and what was loaded goes when the last descriptor is closed,
 * however kvmtop ends.
 */
#include "sched_iter.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEND_ROOT "run as root, or with CAP_BPF and CAP_PERFMON"

#ifdef KVMTOP_BPF

#include "bpf_load.h"

BPF_IMAGE(task_iter);

/* The kernel hands over 8 pages at a time at most. */
#define READ_SIZE (64u << 10)

struct sched_iter {
	pthread_t loader;
	bool joined;
	atomic_int state; /* enum sched_iter_state; what is below is the loader's until it works */
	struct bpf_object *object;
	struct bpf_link *link, *others; /* what is read of chosen threads, and of all others */
	int wanted; /* the map */
	int error;
	char *buf;
};

/* The iterator shows the tasks of our own pid namespace, under numbers of the initial one. */
static bool in_initial_pid_namespace(void)
{
	char link[64];
	ssize_t n = readlink("/proc/self/ns/pid", link, sizeof(link) - 1);

	if (n < 0)
		return false;
	link[n] = '\0';
	return !strcmp(link, "pid:[4026531836]"); /* PROC_PID_INIT_INO: the same on every kernel */
}

static int attach(const struct sched_iter *it, const char *name, struct bpf_link **out)
{
	struct bpf_program *program = bpf_object__find_program_by_name(it->object, name);

	*out = program ? bpf_program__attach_iter(program, NULL) : NULL;
	if (*out)
		return 0;
	return errno ? -errno : -ENOENT;
}

static int load(struct sched_iter *it)
{
	int rc;

	if (!in_initial_pid_namespace())
		return -EXDEV;
	rc = BPF_OPEN(task_iter, "kvmtop_threads", &it->object);
	if (rc)
		return rc;
	if (bpf_object__load(it->object) < 0)
		return -errno;
	rc = attach(it, "kvmtop_tasks", &it->link);
	if (!rc)
		rc = attach(it, "kvmtop_others", &it->others);
	if (rc)
		return rc;
	it->wanted = bpf_object__find_map_fd_by_name(it->object, "wanted");
	return it->wanted < 0 ? it->wanted : 0;
}

static void unload(struct sched_iter *it)
{
	bpf_link__destroy(it->link);
	bpf_link__destroy(it->others);
	bpf_object__close(it->object);
	it->link = it->others = NULL;
	it->object = NULL;
}

static void *load_in_thread(void *arg)
{
	struct sched_iter *it = arg;

	it->error = load(it);
	atomic_store(&it->state, it->error ? ITER_FAILED : ITER_WORKS);
	return NULL;
}

struct sched_iter *sched_iter_new(void)
{
	struct sched_iter *it = calloc(1, sizeof(*it));

	if (!it)
		return NULL;
	it->buf = malloc(READ_SIZE);
	if (!it->buf || pthread_create(&it->loader, NULL, load_in_thread, it)) {
		free(it->buf);
		free(it);
		return NULL;
	}
	return it;
}

void sched_iter_wait(struct sched_iter *it)
{
	if (!it->joined)
		pthread_join(it->loader, NULL);
	it->joined = true;
}

void sched_iter_free(struct sched_iter *it)
{
	if (!it)
		return;
	sched_iter_wait(it);
	unload(it);
	free(it->buf);
	free(it);
}

enum sched_iter_state sched_iter_state(struct sched_iter *it)
{
	return (enum sched_iter_state)atomic_load(&it->state);
}

static void explain(int err, char *why, size_t size, const char **mend)
{
	*mend = NULL;
	switch (-err) {
	case EXDEV:
		snprintf(why, size, "not in the initial pid namespace");
		*mend = "run it on the host, or give the container --pid=host";
		break;
	case EPERM:
	case EACCES:
		snprintf(why, size, "BPF programs may not be loaded");
		*mend = MEND_ROOT;
		break;
	case ESRCH:
	case ENOENT:
		snprintf(why, size, "the kernel has no type information (BTF) or no task iterator");
		*mend = "a kernel >= 5.8 with CONFIG_DEBUG_INFO_BTF";
		break;
	default:
		snprintf(why, size, "BPF: %s", strerror(-err));
		*mend = "a kernel >= 5.8 with CONFIG_BPF_SYSCALL and CONFIG_DEBUG_INFO_BTF";
		break;
	}
}

void sched_iter_why(const struct sched_iter *it, char *why, size_t size, const char **mend)
{
	explain(it->error, why, size, mend);
}

bool sched_iter_try(char *why, size_t size, const char **mend)
{
	struct sched_iter it = {0};
	int err;

	err = load(&it);
	unload(&it);
	if (err)
		explain(err, why, size, mend);
	return !err;
}

int sched_iter_want(struct sched_iter *it, pid_t tid, void *token)
{
	__u32 key = (__u32)tid;
	__u64 value = (__u64)(uintptr_t)token;

	return bpf_map_update_elem(it->wanted, &key, &value, BPF_ANY) < 0 ? -errno : 0;
}

void sched_iter_drop(struct sched_iter *it, pid_t tid, const void *token)
{
	__u32 key = (__u32)tid;
	__u64 value;

	if (bpf_map_lookup_elem(it->wanted, &key, &value) == 0 && value == (__u64)(uintptr_t)token)
		bpf_map_delete_elem(it->wanted, &key);
}

/* Calls fn for each record of this size; one is never cut: the kernel keeps what does not fit. */
static int read_records(const struct sched_iter *it, const struct bpf_link *link, size_t one,
			void (*fn)(void *ctx, const void *record), void *ctx)
{
	const size_t size = READ_SIZE / one * one;
	int fd = bpf_iter_create(bpf_link__fd(link)), err = 0;
	size_t have = 0;

	if (fd < 0)
		return -errno;
	while (1) {
		ssize_t n = read(fd, it->buf + have, size - have);
		size_t at = 0;

		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0) {
			err = n < 0 ? -errno : 0;
			break;
		}
		have += (size_t)n;
		for (; at + one <= have; at += one)
			fn(ctx, it->buf + at);
		memmove(it->buf, it->buf + at, have - at);
		have -= at;
	}
	close(fd);
	return err;
}

struct reader {
	void (*task)(void *ctx, void *token, const struct task_record *r);
	void (*other)(void *ctx, const struct other_record *r);
	void *ctx;
};

static void hand_over(void *ctx, const void *record)
{
	const struct reader *to = ctx;
	struct task_record r;

	memcpy(&r, record, sizeof(r));
	to->task(to->ctx, (void *)(uintptr_t)r.token, &r);
}

static void hand_over_other(void *ctx, const void *record)
{
	const struct reader *to = ctx;
	struct other_record r;

	memcpy(&r, record, sizeof(r));
	to->other(to->ctx, &r);
}

int sched_iter_read(struct sched_iter *it,
		    void (*fn)(void *ctx, void *token, const struct task_record *r), void *ctx)
{
	struct reader to = {.task = fn, .ctx = ctx};

	return read_records(it, it->link, sizeof(struct task_record), hand_over, &to);
}

int sched_iter_others(struct sched_iter *it, void (*fn)(void *ctx, const struct other_record *r),
		      void *ctx)
{
	struct reader to = {.other = fn, .ctx = ctx};

	return read_records(it, it->others, sizeof(struct other_record), hand_over_other, &to);
}

#else /* made without BPF */

/* Its address is all that is asked for. */
struct sched_iter {
	int unused;
};

struct sched_iter *sched_iter_new(void)
{
	return calloc(1, sizeof(struct sched_iter));
}

void sched_iter_free(struct sched_iter *it)
{
	free(it);
}

void sched_iter_wait(struct sched_iter *it)
{
	(void)it;
}

enum sched_iter_state sched_iter_state(struct sched_iter *it)
{
	(void)it;
	return ITER_FAILED;
}

void sched_iter_why(const struct sched_iter *it, char *why, size_t size, const char **mend)
{
	(void)it;
	snprintf(why, size, "kvmtop was made without BPF");
	*mend = "make BPF=1";
}

bool sched_iter_try(char *why, size_t size, const char **mend)
{
	sched_iter_why(NULL, why, size, mend);
	return false;
}

int sched_iter_want(struct sched_iter *it, pid_t tid, void *token)
{
	(void)it;
	(void)tid;
	(void)token;
	return -ENOTSUP;
}

void sched_iter_drop(struct sched_iter *it, pid_t tid, const void *token)
{
	(void)it;
	(void)tid;
	(void)token;
}

int sched_iter_read(struct sched_iter *it,
		    void (*fn)(void *ctx, void *token, const struct task_record *r), void *ctx)
{
	(void)it;
	(void)fn;
	(void)ctx;
	return -ENOTSUP;
}

int sched_iter_others(struct sched_iter *it, void (*fn)(void *ctx, const struct other_record *r),
		      void *ctx)
{
	(void)it;
	(void)fn;
	(void)ctx;
	return -ENOTSUP;
}

#endif

/* TASK_REPORT of the kernel: the highest of the bits that are reported names the state. */
char sched_iter_letter(unsigned state)
{
	static const char letters[] = "RSDTtXZP";
	const unsigned noload = 0x400, idle = 0x402, frozen = 0x8000, rtlock = 0x1000;
	unsigned bits = state & 0x7f, n = 0;

	if ((state & idle) == idle && !(state & ~(idle | noload)))
		return 'I';
	if (state & (rtlock | frozen))
		bits |= 2;
	while (bits >> n)
		n++;
	return letters[n];
}
