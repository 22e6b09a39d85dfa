// SPDX-License-Identifier: GPL-2.0-only
/*
 * The threads' counters in one pass inside the kernel, by a BPF program that iterates over tasks
 * (bpf/task_iter.bpf.c), where that may be had; else sched.c reads two files a thread, and
 * host_tasks.c one a process.
 *
 * One instance, the engine's (collector_env.iter), for the collecting thread only.
 */
#ifndef KVMTOP_COLLECTORS_SCHED_ITER_H
#define KVMTOP_COLLECTORS_SCHED_ITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "bpf/task_record.h"

struct sched_iter;

/*
 * Begins to load the program in a thread of its own: the verifier and the kernel's type
 * information take 20 to 50 ms of CPU, which no first frame should wait for. NULL: no memory.
 */
struct sched_iter *sched_iter_new(void);
/* Waits for the loading to end. NULL is fine. */
void sched_iter_free(struct sched_iter *it);

/* Returns when it is loaded, or is not to be had. */
void sched_iter_wait(struct sched_iter *it);

enum sched_iter_state { ITER_LOADING, ITER_WORKS, ITER_FAILED };
enum sched_iter_state sched_iter_state(struct sched_iter *it);
/* Why it failed, and what would help (NULL: not known). */
void sched_iter_why(const struct sched_iter *it, char *why, size_t size, const char **mend);
/* Loads now and says whether it works; why gets the reason where not, mend what would help. */
bool sched_iter_try(char *why, size_t size, const char **mend);

/*
 * From now on reads give thread `tid` (of the initial pid namespace) with this token. Only while
 * it works. 0 or -errno.
 */
int sched_iter_want(struct sched_iter *it, pid_t tid, void *token);
/* No more; nothing happens where the tid has another token by now, another thread's. */
void sched_iter_drop(struct sched_iter *it, pid_t tid, const void *token);

/* Calls fn for each wanted thread that lives; what is missing then ended, or is to be read
 * otherwise. 0 or -errno. */
int sched_iter_read(struct sched_iter *it,
		    void (*fn)(void *ctx, void *token, const struct task_record *r), void *ctx);
/* The same of all other threads of the host, in the order of their numbers. 0 or -errno. */
int sched_iter_others(struct sched_iter *it, void (*fn)(void *ctx, const struct other_record *r),
		      void *ctx);
/* The state as /proc/<pid>/stat spells it. */
char sched_iter_letter(unsigned state);

#endif
