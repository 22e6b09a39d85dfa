// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of perf's as a side of a comparison (report_side.h). What is known of a VM there is its
 * process and its vCPUs' threads; rates are by those threads, as a recording's are by its vCPUs.
 */
#include "report_side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "diff.h"
#include "grow.h"
#include "kvm_names.h"
#include "perfdata.h"
#include "report.h"
#include "report_out.h"
#include "report_priv.h"
#include "report_samples.h"
#include "snapshot.h"
#include "sysroot.h"
#include "text.h"

#define SLICE_LEAST (10 * NS_PER_MS)
#define THREADS_MOST 100000u
#define COMM 16
#define HINTS 65536u

/* A vCPU's thread, or any process's first one for its name. */
struct thread {
	int32_t pid, tid;
	bool vcpu;
	uint32_t process; /* of a vCPU's, once make_vms() was called */
	char comm[COMM];
};

struct process {
	int32_t pid;
	uint32_t vm; /* of the side */
	unsigned nvcpu;
};

struct reading {
	struct diff_side *side;
	struct perfdata *p;
	int64_t first, last; /* ns of the recording's clock */
	int64_t slice; /* ns */
	struct thread *thread;
	size_t nthreads, thread_room;
	uint32_t *hint; /* by the tid's low bits: where its thread was found last */
	struct process *process;
	size_t nprocesses, last_process;
	struct report r;
	struct report_samples s;
	bool samples;
};

/* ---- how long it is, and who was there ---- */

static bool is_thread(const struct thread *t, int32_t pid, int32_t tid)
{
	return t->tid == tid && t->pid == pid;
}

/* NULL: none yet. */
static struct thread *find_thread(struct reading *g, int32_t pid, int32_t tid)
{
	uint32_t *hint = &g->hint[(uint32_t)tid % HINTS];

	if (*hint < g->nthreads && is_thread(&g->thread[*hint], pid, tid))
		return &g->thread[*hint];
	for (size_t i = g->nthreads; i--;) {
		if (is_thread(&g->thread[i], pid, tid)) {
			*hint = (uint32_t)i;
			return &g->thread[i];
		}
	}
	return NULL;
}

static struct thread *thread_of(struct reading *g, int32_t pid, int32_t tid)
{
	struct thread *t = find_thread(g, pid, tid);

	if (t)
		return t;
	if (g->nthreads >= THREADS_MOST)
		return NULL;
	if (!grow(&g->thread, g->nthreads, &g->thread_room, sizeof(*g->thread)))
		return NULL;
	g->thread[g->nthreads] = (struct thread){.pid = pid, .tid = tid};
	return &g->thread[g->nthreads++];
}

/* pid, tid, and the name of 15 bytes at most. */
static int take_comm(struct reading *g, const struct perfdata_record *r)
{
	const size_t head = sizeof(struct perf_event_header);
	struct thread *t;
	int32_t id[2];

	if (r->size < head + sizeof(id) + 8)
		return 0;
	id[0] = (int32_t)perfdata_u32(r, head);
	id[1] = (int32_t)perfdata_u32(r, head + sizeof(id[0]));
	if (id[0] != id[1])
		return 0;
	t = thread_of(g, id[0], id[1]);
	if (!t)
		return -ENOMEM;
	memset(t->comm, 0, sizeof(t->comm));
	for (size_t i = 0, at = head + sizeof(id); i < COMM - 1 && at + i < r->size; i++) {
		t->comm[i] = (char)r->bytes[at + i];
		if (!t->comm[i])
			break;
	}
	return 0;
}

/* A thread that runs a vCPU: it makes KVM's events, or was seen in guest mode. */
static bool runs_vcpu(const struct reading *g, const struct perfdata_record *r)
{
	uint8_t domain;
	int event;

	if (g->samples)
		return !r->raw && report_samples_domain(r, &domain) && DOMAIN_IS_GUEST(domain);
	event = r->raw ? kvm_format_event(g->r.format, r->raw, r->raw_len) : -1;
	return event >= 0 && kvm_events[event].type != EV_VCPU_WAKEUP &&
	       kvm_events[event].type != EV_FPU && kvm_events[event].type != EV_HALT_POLL;
}

static int look(void *ctx, const struct perfdata_record *r, void *slot)
{
	struct reading *g = ctx;
	struct thread *t;

	(void)slot;
	if (r->type == PERF_RECORD_COMM)
		return take_comm(g, r);
	if (r->type != PERF_RECORD_SAMPLE || r->time <= 0)
		return 0;
	if (!g->first || r->time < g->first)
		g->first = r->time;
	if (r->time > g->last)
		g->last = r->time;
	if (r->pid <= 0 || !runs_vcpu(g, r))
		return 0;
	t = thread_of(g, r->pid, r->tid);
	if (!t)
		return -ENOMEM;
	t->vcpu = true;
	return 0;
}

static int give_nothing(void *ctx, int64_t time, const void *slot)
{
	(void)ctx;
	(void)time;
	(void)slot;
	return 0;
}

/* ---- VMs ---- */

static int new_process(struct reading *g, int32_t pid)
{
	struct thread *first = thread_of(g, pid, pid);
	struct process *p = &g->process[g->nprocesses];
	char name[COMM + 16], id[16];

	snprintf(name, sizeof(name), "%s:%d", first && *first->comm ? first->comm : "process", pid);
	snprintf(id, sizeof(id), "%d", pid);
	*p = (struct process){.pid = pid};
	return diff_vm_number(g->side,
			      &(struct snap_vm){.name = name, .vm_id = id, .uuid = "", .pid = pid},
			      g->nprocesses++, 0, &p->vm);
}

static struct process *process_of(struct reading *g, int32_t pid)
{
	size_t i = g->last_process;

	if (i < g->nprocesses && g->process[i].pid == pid)
		return &g->process[i];
	for (i = 0; i < g->nprocesses; i++) {
		if (g->process[i].pid == pid) {
			g->last_process = i;
			return &g->process[i];
		}
	}
	return NULL;
}

static int make_vms(struct reading *g)
{
	size_t n = g->nthreads;
	int rc = 0;

	g->process = calloc(n + 1, sizeof(*g->process));
	if (!g->process)
		return -ENOMEM;
	for (size_t i = 0; i < n && !rc; i++) {
		int32_t pid = g->thread[i].pid;

		if (!g->thread[i].vcpu)
			continue;
		if (!process_of(g, pid))
			rc = new_process(g, pid);
		if (rc)
			break;
		process_of(g, pid)->nvcpu++;
		g->thread[i].process = (uint32_t)(process_of(g, pid) - g->process);
	}
	for (size_t i = 0; i < g->nprocesses && !rc; i++)
		g->side->vm[g->process[i].vm].nvcpu = g->process[i].nvcpu;
	return rc;
}

/* ---- slices ---- */

static void make_slices(struct reading *g)
{
	int64_t length = g->last - g->first + 1, n = length / SLICE_LEAST;
	struct diff_side *side = g->side;

	n = n < 1 ? 1 : n > DIFF_BLOCKS ? DIFF_BLOCKS : n;
	g->slice = (length + n - 1) / n;
	side->by_perf = true;
	side->nblocks = (unsigned)n;
	side->intervals = (uint64_t)n;
	side->length = length;
	side->shortest = side->longest = g->slice;
}

static unsigned slice_of(const struct reading *g, int64_t time)
{
	int64_t n = time > g->first ? (time - g->first) / g->slice : 0;

	return n < g->side->nblocks ? (unsigned)n : g->side->nblocks - 1;
}

static double slice_seconds(const struct reading *g, unsigned block)
{
	int64_t from = (int64_t)block * g->slice, left = g->side->length - from;

	return (double)(left < g->slice ? left : g->slice) / 1e9;
}

static int put(const struct reading *g, const struct process *p, unsigned block,
	       enum diff_what what, unsigned kind, const char *name, const char *module, double v)
{
	const struct diff_series key = {
		.what = (uint8_t)what, .kind = (uint8_t)kind, .name = name, .module = module};

	return diff_put(g->side, p->vm, block, &key, v);
}

/* vCPU-seconds: what counts of this kind are divided by. */
static int put_times(const struct reading *g, unsigned kind)
{
	int rc = 0;

	for (size_t i = 0; i < g->nprocesses; i++)
		for (unsigned b = 0; b < g->side->nblocks && !rc; b++)
			rc = put(g, &g->process[i], b, DIFF_TIME, kind, "", "",
				 slice_seconds(g, b) * g->process[i].nvcpu);
	return rc;
}

/* ---- events ---- */

static int put_begin(const struct reading *g, const struct process *p, unsigned block,
		     const struct report_key *k)
{
	char name[REPORT_NAME];
	int rc;

	report_name(&g->r, k, name, sizeof(name));
	rc = put(g, p, block, DIFF_EXITS, k->kind, name, "", 1);
	return rc ? rc : put(g, p, block, DIFF_TOTAL, k->kind, "", "", 1);
}

static bool waits(const struct report_key *k)
{
	if (k->kind == KIND_USEREXIT)
		return kvm_names_idle_user(k->key);
	return k->kind == KIND_VMEXIT && kvm_names_idle(k->isa, k->key);
}

static int put_end(const struct reading *g, const struct process *p, unsigned block,
		   const struct report_pair *pair)
{
	double v = (double)pair->ns * 1e-7; /* % of a second */
	char name[REPORT_NAME];
	int rc;

	if (pair->torn || waits(&pair->key))
		return 0;
	report_name(&g->r, &pair->key, name, sizeof(name));
	rc = put(g, p, block, DIFF_EXIT_TIME, pair->key.kind, name, "", v);
	return rc ? rc : put(g, p, block, DIFF_TOTAL, DIFF_TOTAL_TIME + pair->key.kind, "", "", v);
}

static int on_event(void *ctx, const struct report_event *e, int64_t time,
		    const struct report_pair *pairs)
{
	struct reading *g = ctx;
	const struct thread *t = find_thread(g, e->pid, e->tid);
	const struct process *p = t && t->vcpu ? &g->process[t->process] : NULL;
	unsigned block = slice_of(g, time);
	int rc = 0;

	for (unsigned k = 0; k < KIND_HALT && p && !rc; k++) {
		if (pairs[k].begun)
			rc = put_begin(g, p, block, &pairs[k].begins);
		if (pairs[k].done && !rc)
			rc = put_end(g, p, block, &pairs[k]);
	}
	return rc;
}

static void on_again(void *ctx)
{
	struct diff_side *side = ((struct reading *)ctx)->side;

	for (size_t i = 0; i < side->nseries; i++) {
		memset(side->series[i].block, 0, DIFF_BLOCKS * sizeof(double));
		side->series[i].sum = 0;
	}
}

static int read_events(struct reading *g)
{
	const struct report_watch watch = {on_event, on_again, g};
	int rc;

	g->r.watch = &watch;
	rc = report_read(&g->r, g->p);
	g->r.watch = NULL;
	for (unsigned k = 0; k < KIND_HALT && !rc; k++)
		if (report_recorded(&g->r, (enum kvm_kind)k))
			rc = put_times(g, k);
	return rc;
}

/* ---- samples ---- */

/* Which part of a vCPU's time a sample stands for, % of a second; 0: it cannot be told. */
static double sample_worth(const struct perfdata *p)
{
	for (size_t i = 0; i < perfdata_events(p); i++) {
		const struct perf_event_attr *a = perfdata_attr(p, i);

		if (a->type == PERF_TYPE_TRACEPOINT || !a->sample_period ||
		    (a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_DUMMY))
			continue;
		if (a->freq)
			return 100.0 / (double)a->sample_freq;
		if (a->type == PERF_TYPE_SOFTWARE &&
		    (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK))
			return (double)a->sample_period * 1e-7;
		return 0;
	}
	return 0;
}

static int put_sample(const struct reading *g, const struct report_sample *r, double worth)
{
	struct process *p = process_of((struct reading *)g, r->pid);
	unsigned kind = diff_domain_kind(g->side, r->domain);
	double v = worth * (double)r->n;
	struct report_sample page = *r;
	char name[512];
	int rc;

	if (!p || r->idle || !diff_wants_domain(g->side, r->domain))
		return 0;
	page.ip &= ~UINT64_C(0xfff);
	report_samples_row_name(&page, name, sizeof(name));
	rc = put(g, p, r->slice, DIFF_SYMBOLS, kind, name, r->module ? r->module : "", v);
	if (!rc && g->side->part != DIFF_WHOLE)
		rc = put(g, p, r->slice, DIFF_SYMBOLS, kind, DIFF_ALL, "", v);
	return rc ? rc : put(g, p, r->slice, DIFF_TOTAL, DIFF_TOTAL_SAMPLES, "", "", v);
}

static int read_samples(struct reading *g, const struct guest_files *files, char *err, size_t size)
{
	static const struct report_query all = {0};
	double worth = sample_worth(g->p);
	struct sysroot *root = NULL;
	char safe[200];
	int rc;

	if (worth <= 0) {
		text_escape(safe, sizeof(safe), g->side->path);
		snprintf(err, size,
			 "%s: its samples are by a count of events, not by time: record with -F HZ",
			 safe);
		return -EINVAL;
	}
	g->s = (struct report_samples){
		.slice_from = g->first, .slice_ns = g->slice, .slices = g->side->nblocks};
	rc = report_samples_read(&g->s, &all, g->p);
	if (!rc)
		rc = sysroot_open(NULL, &root);
	if (!rc)
		rc = report_samples_name(&g->s, g->p, root, files);
	sysroot_close(root);
	for (size_t i = 0; i < g->s.n && !rc; i++)
		rc = put_sample(g, &g->s.row[i], worth);
	return rc ? rc : put_times(g, DIFF_TIME_SAMPLES);
}

/* ---- the whole ---- */

static int take_facts(struct reading *g)
{
	const char *kernel = perfdata_text(g->p, PERFDATA_KERNEL);
	const char *host = perfdata_text(g->p, PERFDATA_HOST);

	snprintf(g->side->node, sizeof(g->side->node), "%s", host ? host : "");
	return kernel ? host_facts_add(&g->side->facts, "kernel", kernel) : 0;
}

static int prepare(struct reading *g, const struct report_query *q)
{
	int fd = open("/sys/kernel/tracing/events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = report_prepare(&g->r, q, g->p, fd);

	if (fd >= 0)
		close(fd);
	g->samples = !rc && !g->r.nevents && report_samples_in(g->p);
	if (rc || g->r.nevents || g->samples)
		return rc;
	return -ENODATA;
}

static int read_all(struct reading *g, const struct guest_files *files, char *err, size_t size)
{
	static const struct report_query q = {.kinds = REPORT_KINDS, .figures = true};
	const struct perfdata_reader reader = {0, false, look, give_nothing, g};
	int rc = prepare(g, &q);

	if (!rc)
		rc = perfdata_run(g->p, &reader);
	if (!rc && !g->last)
		rc = -ENODATA;
	if (!rc)
		rc = perfdata_rewind(g->p);
	if (rc)
		return rc;
	make_slices(g);
	rc = make_vms(g);
	if (!rc)
		rc = take_facts(g);
	if (!rc)
		rc = g->samples ? read_samples(g, files, err, size) : read_events(g);
	g->side->lost = perfdata_lost(perfdata_sum(g->p));
	g->side->damaged = 0;
	return rc;
}

int report_side_read(struct diff_side *side, const struct guest_files *files, char *err,
		     size_t size)
{
	struct reading g = {.side = side, .hint = calloc(HINTS, sizeof(*g.hint))};
	char safe[200];
	int rc = g.hint ? perfdata_open(AT_FDCWD, side->path, &g.p) : -ENOMEM;

	err[0] = '\0';
	if (!rc)
		rc = read_all(&g, files, err, size);
	if (rc && !err[0]) {
		text_escape(safe, sizeof(safe), side->path);
		snprintf(err, size, "%s: %s", safe,
			 rc == -ENODATA ? "no events of KVM in it, and no samples"
					: perfdata_why(rc));
	}
	report_samples_free(&g.s);
	report_free(&g.r);
	perfdata_free(g.p);
	free(g.thread);
	free(g.hint);
	free(g.process);
	return rc;
}
