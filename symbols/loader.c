// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sources and the helper thread that loads them (symbols.h).
 *
 * The collecting thread owns sources and what they have; the helper gets jobs with copies of all
 * that they need, and gives back maps. The two meet at two lists under one lock, held for a few
 * instructions. A file system that does not answer (a guest's, over the network) keeps the helper,
 * and nobody else, waiting: symbols_free() then leaves it behind.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "judge.h"
#include "load.h"
#include "sysroot.h"

#define REFRESH_NS (30 * 1000000000LL)
#define MOST_BACKOFF 5 /* 16 minutes */
#define END_WAIT_S 2 /* for the helper when kvmtop ends */
#define TRIM_EVERY 64 /* jobs */
#define EVIDENCE_MAX 64 /* addresses kept of a guest */
#define EVIDENCE_FEW 8

enum source_kind { SOURCE_HOST, SOURCE_PROCESS, SOURCE_GUEST };

struct job {
	struct job *next;
	struct symsource *src; /* the collecting thread's, not looked into by the helper */
	enum source_kind kind;
	struct guest_vm vm;
	struct symbols_evidence evidence[EVIDENCE_MAX];
	size_t nevidence;
	struct loaded loaded;
};

struct symsource {
	struct symbols *owner;
	struct symsource *next, *prev;
	enum source_kind kind;
	struct guest_vm vm;
	struct symmap *map;
	struct symmap *rejected; /* what the guest did contradicted it */
	struct symbols_status status;
	struct symbols_evidence evidence[EVIDENCE_MAX]; /* exits, the last ones */
	size_t nevidence, evidence_at, asked_with;
	bool wants_evidence, names_idle;
	struct judge judge;
	int64_t refreshed_ns;
	unsigned backoff; /* doublings of REFRESH_NS */
	bool waiting; /* a job is under way */
	bool closed; /* freed when that comes back */
};

/* What both threads have; freed by the last. */
struct shared {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job *todo, **todo_end, *done;
	bool stop, ended, left_behind;
	int event_fd;
	struct sysroot *root; /* copies: a helper that is left behind may come back to them */
	struct guest_files files;
	struct load_context context;
};

struct symbols {
	struct shared *shared;
	struct symsource *sources;
	pthread_t thread;
	bool started;
};

/* --- the helper thread --- */

static void free_vm(struct guest_vm *vm)
{
	free((char *)vm->name);
	free((char *)vm->uuid);
	*vm = (struct guest_vm){0};
}

static bool copy_vm(struct guest_vm *to, const struct guest_vm *from)
{
	*to = (struct guest_vm){.pid = from->pid};
	if (from->name)
		to->name = strdup(from->name);
	if (from->uuid)
		to->uuid = strdup(from->uuid);
	return (!from->name || to->name) && (!from->uuid || to->uuid);
}

static void guest_files_free(struct guest_files *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free((char *)f->option[i].vm);
		free((char *)f->option[i].file);
	}
	free((struct guest_file_option *)f->option);
	*f = (struct guest_files){0};
}

static int guest_files_copy(struct guest_files *to, const struct guest_files *from)
{
	struct guest_file_option *o = calloc(from->n + 1, sizeof(*o));

	*to = (struct guest_files){.option = o, .n = o ? from->n : 0};
	for (size_t i = 0; i < to->n; i++) {
		const struct guest_file_option *f = &from->option[i];

		o[i].what = f->what;
		o[i].vm = f->vm ? strdup(f->vm) : NULL;
		o[i].file = strdup(f->file);
		if (!o[i].file || (f->vm && !o[i].vm))
			return -ENOMEM;
	}
	return o ? 0 : -ENOMEM;
}

static void free_job(struct job *j)
{
	symmap_unref(j->loaded.map);
	free_vm(&j->vm);
	free(j);
}

static void free_jobs(struct job *j)
{
	while (j) {
		struct job *next = j->next;

		free_job(j);
		j = next;
	}
}

static void free_shared(struct shared *s)
{
	free_jobs(s->todo);
	free_jobs(s->done);
	map_cache_free(s->context.maps);
	symcache_free(s->context.tables);
	sysroot_close(s->root);
	guest_files_free(&s->files);
	if (s->event_fd >= 0)
		close(s->event_fd);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void work(const struct load_context *c, struct job *j)
{
	switch (j->kind) {
	case SOURCE_HOST:
		load_host(c, &j->loaded);
		break;
	case SOURCE_PROCESS:
		load_process(c, j->vm.pid, &j->loaded);
		break;
	case SOURCE_GUEST:
		load_guest(c, &j->vm, j->evidence, j->nevidence, &j->loaded);
		break;
	}
}

/* The next job; NULL: it is over. Called and left with the lock held. */
static struct job *next_job(struct shared *s)
{
	struct job *j;

	while (!s->todo && !s->stop)
		pthread_cond_wait(&s->wake, &s->lock);
	if (s->stop)
		return NULL;
	j = s->todo;
	s->todo = j->next;
	if (!s->todo)
		s->todo_end = &s->todo;
	j->next = NULL;
	return j;
}

static void *helper(void *arg)
{
	struct shared *s = arg;
	bool left_behind;
	struct job *j;

	/* Names are worth less than figures: whoever else wants the CPU goes first. */
	setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
	pthread_mutex_lock(&s->lock);
	for (unsigned n = 1; (j = next_job(s)) != NULL; n++) {
		pthread_mutex_unlock(&s->lock);
		work(&s->context, j);
		if (n % TRIM_EVERY == 0)
			map_cache_trim(s->context.maps);
		pthread_mutex_lock(&s->lock);
		j->next = s->done;
		s->done = j;
		eventfd_write(s->event_fd, 1);
	}
	left_behind = s->left_behind;
	s->ended = true;
	pthread_mutex_unlock(&s->lock);
	if (left_behind)
		free_shared(s);
	return NULL;
}

/* --- its owner --- */

static int make_shared(const struct sysroot *root, const struct guest_files *files,
		       struct shared *sh)
{
	int rc;

	pthread_mutex_init(&sh->lock, NULL);
	pthread_cond_init(&sh->wake, NULL);
	sh->todo_end = &sh->todo;
	sh->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sh->event_fd < 0)
		return -errno;
	rc = sysroot_open(sysroot_dir(root), &sh->root);
	if (!rc && files)
		rc = guest_files_copy(&sh->files, files);
	sh->context = (struct load_context){.root = sh->root,
					    .files = &sh->files,
					    .tables = symcache_new(),
					    .maps = map_cache_new()};
	return rc || (sh->context.tables && sh->context.maps) ? rc : -ENOMEM;
}

int symbols_new(const struct sysroot *root, const struct guest_files *files, struct symbols **out)
{
	struct symbols *s = calloc(1, sizeof(*s));
	struct shared *sh = calloc(1, sizeof(*sh));
	int rc;

	*out = NULL;
	if (!s || !sh) {
		free(s);
		free(sh);
		return -ENOMEM;
	}
	rc = make_shared(root, files, sh);
	if (rc) {
		free_shared(sh);
		free(s);
		return rc;
	}
	s->shared = sh;
	*out = s;
	return 0;
}

static void destroy_source(struct symsource *src)
{
	symmap_unref(src->map);
	symmap_unref(src->rejected);
	free_vm(&src->vm);
	free(src);
}

static void free_source(struct symsource *src)
{
	struct symbols *s = src->owner;

	if (src->prev)
		src->prev->next = src->next;
	else
		s->sources = src->next;
	if (src->next)
		src->next->prev = src->prev;
	destroy_source(src);
}

/* True when the helper has ended; false: it is stuck, and frees what is shared itself. */
static bool end_helper(struct symbols *s)
{
	struct shared *sh = s->shared;
	struct timespec until;
	bool ended;

	pthread_mutex_lock(&sh->lock);
	sh->stop = true;
	pthread_cond_signal(&sh->wake);
	pthread_mutex_unlock(&sh->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += END_WAIT_S;
	if (!s->started || pthread_timedjoin_np(s->thread, NULL, &until) == 0)
		return true;
	pthread_mutex_lock(&sh->lock);
	ended = sh->ended;
	sh->left_behind = !ended;
	pthread_mutex_unlock(&sh->lock);
	if (ended)
		pthread_join(s->thread, NULL);
	else
		pthread_detach(s->thread);
	return ended;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	for (struct symsource *src = s->sources, *next; src; src = next) {
		next = src->next;
		destroy_source(src);
	}
	if (end_helper(s))
		free_shared(s->shared);
	free(s);
}

int symbols_fd(const struct symbols *s)
{
	return s->shared->event_fd;
}

/* Signals are for those who wait for them. */
static bool start_helper(struct symbols *s)
{
	sigset_t all, was;

	if (s->started)
		return true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	s->started = pthread_create(&s->thread, NULL, helper, s->shared) == 0;
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return s->started;
}

/* False: no memory or no thread; asked again at a refresh. */
static bool ask(struct symsource *src)
{
	struct shared *sh = src->owner->shared;
	struct job *j = calloc(1, sizeof(*j));

	if (!j || !copy_vm(&j->vm, &src->vm) || !start_helper(src->owner)) {
		if (j)
			free_job(j);
		return false;
	}
	j->src = src;
	j->kind = src->kind;
	j->nevidence = src->asked_with = src->nevidence;
	memcpy(j->evidence, src->evidence, sizeof(j->evidence));
	src->waiting = true;
	pthread_mutex_lock(&sh->lock);
	*sh->todo_end = j;
	sh->todo_end = &j->next;
	pthread_cond_signal(&sh->wake);
	pthread_mutex_unlock(&sh->lock);
	return true;
}

static struct symsource *open_source(struct symbols *s, enum source_kind kind,
				     const struct guest_vm *vm)
{
	struct symsource *src = calloc(1, sizeof(*src));

	if (!src)
		return NULL;
	src->owner = s;
	src->kind = kind;
	src->status.state = SYMBOLS_LOADING;
	src->next = s->sources;
	if (src->next)
		src->next->prev = src;
	s->sources = src;
	if (!copy_vm(&src->vm, vm) || !ask(src)) {
		free_source(src);
		return NULL;
	}
	return src;
}

struct symsource *symbols_host(struct symbols *s)
{
	return open_source(s, SOURCE_HOST, &(struct guest_vm){0});
}

struct symsource *symbols_process(struct symbols *s, pid_t pid)
{
	return open_source(s, SOURCE_PROCESS, &(struct guest_vm){.pid = pid});
}

struct symsource *symbols_guest(struct symbols *s, const struct guest_vm *vm)
{
	return open_source(s, SOURCE_GUEST, vm);
}

void symsource_close(struct symsource *src)
{
	if (!src)
		return;
	if (src->waiting)
		src->closed = true;
	else
		free_source(src);
}

/* Not for each one address: reading a vmlinux takes a while. */
/*
 * With each new address while they are few, for a guest that is busy may never show another; then
 * when there are half as many more: a vmlinux is read anew every time.
 */
static void ask_with_evidence(struct symsource *src)
{
	size_t more = src->asked_with < EVIDENCE_FEW ? 1 : src->asked_with / 2 + 2;

	if (src->wants_evidence && !src->waiting && src->nevidence >= src->asked_with + more)
		ask(src);
}

static bool take_over(struct job *j)
{
	struct symsource *src = j->src;
	bool changed;

	src->waiting = false;
	if (src->closed) {
		free_source(src);
		return false;
	}
	src->wants_evidence = j->loaded.wants_evidence;
	ask_with_evidence(src); /* what came meanwhile */
	/* Read again, and still what the guest contradicted. */
	if (src->rejected && j->loaded.map && symmap_equal(src->rejected, j->loaded.map))
		return false;
	/* Read for nothing: the longer until the next time. */
	if (src->map && j->loaded.map && symmap_equal(src->map, j->loaded.map)) {
		src->backoff += src->backoff < MOST_BACKOFF;
		return false;
	}
	src->backoff = 0;
	changed = src->map || j->loaded.map || src->status.state != j->loaded.status.state;
	symmap_unref(src->map);
	src->map = j->loaded.map;
	src->status = j->loaded.status;
	src->names_idle = j->loaded.names_idle;
	src->judge = (struct judge){0};
	j->loaded.map = NULL;
	return changed;
}

bool symbols_poll(struct symbols *s)
{
	struct shared *sh = s->shared;
	bool changed = false;
	struct job *done;
	eventfd_t count;

	pthread_mutex_lock(&sh->lock);
	done = sh->done;
	sh->done = NULL;
	pthread_mutex_unlock(&sh->lock);
	if (done)
		eventfd_read(sh->event_fd, &count);
	for (struct job *j = done; j; j = j->next)
		changed |= take_over(j);
	free_jobs(done);
	symcache_trim(sh->context.tables);
	return changed;
}

void symsource_refresh(struct symsource *src, int64_t now_ns)
{
	if (src->waiting ||
	    (src->refreshed_ns && now_ns - src->refreshed_ns < REFRESH_NS << src->backoff))
		return;
	src->refreshed_ns = now_ns;
	ask(src);
}

/* Keeps the address of an exit, the last of different ones. */
static void keep_exit(struct symsource *src, const struct symbols_evidence *e)
{
	for (size_t i = 0; i < src->nevidence; i++)
		if (src->evidence[i].addr == e->addr && src->evidence[i].kind == e->kind)
			return;
	src->evidence[src->evidence_at] = *e;
	src->evidence_at = (src->evidence_at + 1) % EVIDENCE_MAX;
	if (src->nevidence < EVIDENCE_MAX)
		src->nevidence++;
}

static void reject(struct symsource *src)
{
	struct loaded l = {0};
	char mend[SYMBOLS_TEXT];

	guest_symbols_command(&src->vm, mend, sizeof(mend));
	judge_text(&src->judge, src->status.source, mend, &l);
	symmap_unref(src->rejected);
	src->rejected = src->map;
	src->map = NULL;
	src->status = l.status;
}

bool symsource_evidence(struct symsource *src, const struct symbols_evidence *e, size_t n)
{
	const struct judged of = {.map = src->map,
				  .linux_idle = src->names_idle,
				  .complete = src->status.state == SYMBOLS_OK};

	for (size_t i = 0; i < n; i++) {
		if (!(e[i].addr >> 63))
			continue;
		if (e[i].kind != EVIDENCE_SAMPLE)
			keep_exit(src, &e[i]);
		if (src->map)
			judge_add(&src->judge, &of, &e[i]);
	}
	if (src->map && judge_contradicts(&src->judge)) {
		reject(src);
		return true;
	}
	ask_with_evidence(src);
	return false;
}

bool symsource_wants_exits(const struct symsource *src)
{
	return src->wants_evidence;
}

bool symsource_lookup(const struct symsource *src, uint64_t addr, struct symbol *out)
{
	if (src->map)
		return symmap_lookup(src->map, addr, out);
	*out = (struct symbol){0};
	return false;
}

const struct symmap *symsource_map(const struct symsource *src)
{
	return src->map;
}

const struct symbols_status *symsource_status(const struct symsource *src)
{
	return &src->status;
}

bool symbols_symbol(const struct symbols *s, uint32_t table, uint32_t index, struct symbol *out)
{
	return symcache_symbol(s->shared->context.tables, table, index, out);
}
