// SPDX-License-Identifier: GPL-2.0-only
/* From the records of a perf.data file to the tables of report.h. */
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "grow.h"
#include "kvm_format.h"
#include "kvm_names.h"
#include "perfdata.h"
#include "report_priv.h"

#define CPUS_MAX 65536
#define LOSSES_MAX 65536

/* ---- formats ---- */

static int take_format(struct report *r, unsigned event, const char *text, size_t len)
{
	int rc = kvm_format_load(r->format, event, text, len);

	if (rc == -ENOMEM)
		return rc;
	if (rc > 0)
		r->formats++;
	(void)kvm_names_load(r->names, kvm_events[event].event, text, len);
	return 0;
}

static int on_format(void *ctx, const char *system, const char *text, size_t len)
{
	char head[80] = "", name[64] = "";
	struct report *r = ctx;

	memcpy(head, text, len < sizeof(head) ? len : sizeof(head) - 1);
	if (sscanf(head, "name: %63s", name) != 1)
		return 0;
	for (unsigned i = 0; i < KVM_EVENTS; i++)
		if (!strcmp(kvm_events[i].system, system) && !strcmp(kvm_events[i].event, name))
			return take_format(r, i, text, len);
	return 0;
}

static bool recorded(const struct perfdata *p, int id)
{
	for (size_t i = 0; i < perfdata_events(p); i++)
		if (perfdata_attr(p, i)->type == PERF_TYPE_TRACEPOINT &&
		    perfdata_attr(p, i)->config == (uint64_t)id)
			return true;
	return false;
}

/* This machine's format of an event, where the recording has an event of that number. */
static int take_own(struct report *r, const struct perfdata *p, unsigned event, int tracing_fd)
{
	char path[96], text[8192], *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s/format", kvm_events[event].system,
		 kvm_events[event].event);
	fd = openat(tracing_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	at = strstr(text, "\nID: ");
	return at && recorded(p, atoi(at + 5)) ? take_format(r, event, text, (size_t)n) : 0;
}

/* Another machine's formats are not this one's. Not known (a file without its end): perhaps. */
static bool is_of_this_machine(const struct perfdata *p)
{
	const char *arch = perfdata_text(p, PERFDATA_ARCH);
	struct utsname u;

	return !perfdata_swapped(p) && (!arch || uname(&u) || strcmp(arch, u.machine) == 0);
}

static void count_events(struct report *r, const struct perfdata *p)
{
	for (unsigned i = 0; i < KVM_EVENTS; i++) {
		if (!kvm_format_id(r->format, i) || !recorded(p, kvm_format_id(r->format, i)))
			continue;
		r->nevents++;
		r->recorded |= 1u << kvm_events[i].type;
	}
}

int report_prepare(struct report *r, const struct report_query *q, const struct perfdata *p,
		   int tracing_fd)
{
	int rc;

	*r = (struct report){.q = q};
	r->names = kvm_names_new();
	r->format = kvm_format_new();
	if (!r->names || !r->format)
		return -ENOMEM;
	kvm_format_swapped(r->format, perfdata_swapped(p));
	rc = perfdata_formats(p, on_format, r);
	if (!rc && !r->formats && tracing_fd >= 0 && is_of_this_machine(p)) {
		for (unsigned i = 0; i < KVM_EVENTS && !rc; i++)
			rc = take_own(r, p, i, tracing_fd);
		r->own_formats = r->formats;
	}
	count_events(r, p);
	return rc;
}

/* ---- as they stand in the file ---- */

static bool in_guest(const struct perfdata_record *rec)
{
	unsigned mode = rec->misc & PERF_RECORD_MISC_CPUMODE_MASK;

	return mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
}

static void set_need(struct report_fields *f, unsigned end)
{
	if (f->need < end)
		f->need = end;
}

static void set_direction(struct report_fields *f, enum kvm_dir_rule rule)
{
	static const uint8_t of[][4] = {
		[DIR_RULE_NONE] = {DIR_NONE, DIR_NONE, DIR_NONE, DIR_NONE},
		[DIR_RULE_FLAG] = {DIR_READ, DIR_WRITE, DIR_WRITE, DIR_WRITE},
		[DIR_RULE_MMIO] = {DIR_UNSATISFIED, DIR_READ, DIR_WRITE, DIR_NONE},
	};

	memcpy(f->dir_of, of[rule], sizeof(f->dir_of));
}

/* Where an event's fields stand, if this is all that it takes: as x86 has them. */
static struct report_fields fields_of(const struct report *r, unsigned event)
{
	const struct kvm_layout *l = kvm_format_layout(r->format, event);
	struct report_fields f = {.type = (uint8_t)kvm_events[event].type};
	bool isa = l && l->key_rule == KEY_ISA;

	if (!l || l->swapped || l->key_rule == KEY_ARM64 || l->key_rule == KEY_USER || l->isa ||
	    (l->key.size && l->key.size != 4 && l->key.size != 8) || l->key.is_signed ||
	    (l->vcpu.size && l->vcpu.size != 4) || (isa && l->extra.size != 4) ||
	    (l->dir_rule != DIR_RULE_NONE && l->dir.size != 4))
		return f;
	f.quick = true;
	f.key = l->key.offset;
	/* A reason has 32 bits that count, however wide its field is. */
	f.key_mask = !l->key.size ? 0 : l->key.size == 4 || isa ? UINT32_MAX : UINT64_MAX;
	f.vcpu = l->vcpu.offset;
	f.no_vcpu = l->vcpu.size ? 0 : UINT32_MAX;
	f.dir = l->dir_rule == DIR_RULE_NONE ? 0 : l->dir.offset;
	set_direction(&f, l->dir_rule);
	f.isa = isa ? l->extra.offset : 0;
	f.isa_mask = isa ? UINT32_MAX : 0;
	f.need = l->need;
	set_need(&f, f.key + 8u); /* all are read as eight bytes, or four */
	set_need(&f, f.vcpu + 4u);
	set_need(&f, f.dir + 4u);
	set_need(&f, f.isa + 4u);
	return f;
}

static uint32_t load4(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static void decode_quick(const struct report_fields *f, const uint8_t *raw, struct report_event *e)
{
	uint32_t dir = load4(raw + f->dir), isa = load4(raw + f->isa) & f->isa_mask;

	memcpy(&e->key, raw + f->key, sizeof(e->key));
	e->key &= f->key_mask;
	e->vcpu = (int32_t)(load4(raw + f->vcpu) | f->no_vcpu);
	e->dir = f->dir_of[dir < 3 ? dir : 3];
	e->isa = isa < UINT8_MAX ? (uint8_t)isa : UINT8_MAX;
}

/* Apart, so that the quick way needs no room on the stack. */
__attribute__((noinline)) static int decode(struct report *r, const struct perfdata_record *rec,
					    struct report_event *e)
{
	struct sample s;

	if (!kvm_format_decode(r->format, rec->raw, rec->raw_len, &s)) {
		r->undecoded++;
		return 0;
	}
	e->key = s.key;
	e->tid = rec->tid >= 0 ? rec->tid : s.tid;
	e->vcpu = s.vcpu_id;
	e->isa = s.isa < UINT8_MAX ? (uint8_t)s.isa : UINT8_MAX;
	e->dir = s.dir;
	return 1;
}

static int take_sample(struct report *r, const struct perfdata_record *rec, struct report_event *e)
{
	int event = rec->raw ? kvm_format_event_of(r->run->ids, rec->raw, rec->raw_len) : -1;
	const struct report_fields *f;

	if (event < 0) {
		r->undecoded += rec->raw != NULL;
		return 0;
	}
	f = &r->run->fields[event];
	r->seen[f->type]++;
	if (!report_pid_wanted(r->q, rec->pid))
		return 0;
	e->type = f->type;
	e->guest = in_guest(rec);
	e->pid = rec->pid;
	e->tid = rec->tid;
	if (f->quick && rec->raw_len >= f->need && rec->tid >= 0) {
		decode_quick(f, rec->raw, e); /* what is not wanted too: quicker than to ask */
		return r->run->want >> f->type & 1;
	}
	return r->run->want >> f->type & 1 ? decode(r, rec, e) : 0;
}

/* Notes the span in which events of that CPU are missing. */
static int take_lost(struct report *r, const struct perfdata_record *rec, uint64_t from)
{
	struct report_run *run = r->run;

	if (run->nlosses == LOSSES_MAX) { /* one long one, then */
		run->loss[run->nlosses - 1].to = (uint64_t)rec->time;
		run->loss_to = (uint64_t)rec->time;
		return 0;
	}
	if (!grow(&run->loss, run->nlosses, &run->loss_room, sizeof(*run->loss)))
		return -ENOMEM;
	run->loss[run->nlosses++] = (struct report_loss){from, (uint64_t)rec->time};
	if ((uint64_t)rec->time > run->loss_to)
		run->loss_to = (uint64_t)rec->time;
	return 0;
}

/* Room for the time of a CPU's newest record. */
__attribute__((noinline)) static int new_cpu(struct report_run *run,
					     const struct perfdata_record *rec)
{
	size_t cpu = (size_t)rec->cpu;
	uint64_t *more;

	if (rec->cpu < 0 || rec->cpu >= CPUS_MAX || !rec->time)
		return 0;
	more = reallocarray(run->cpu_time, cpu + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + run->ncpus, 0, (cpu + 1 - run->ncpus) * sizeof(*more));
	run->cpu_time = more;
	run->ncpus = cpu + 1;
	more[cpu] = (uint64_t)rec->time;
	return 0;
}

static inline int note_time(struct report_run *run, const struct perfdata_record *rec)
{
	if ((size_t)rec->cpu >= run->ncpus || !rec->time)
		return new_cpu(run, rec);
	run->cpu_time[rec->cpu] = (uint64_t)rec->time;
	return 0;
}

__attribute__((noinline)) static int take_other(struct report *r, const struct perfdata_record *rec)
{
	/* What was on its CPU before is asked for a loss only. */
	uint64_t before = (size_t)rec->cpu < r->run->ncpus ? r->run->cpu_time[rec->cpu] : 0;
	int rc = note_time(r->run, rec);

	if (rc || rec->type != PERF_RECORD_LOST || !r->q->figures || r->run->losses_known)
		return rc;
	return take_lost(r, rec, before);
}

static int take(void *ctx, const struct perfdata_record *rec, void *slot)
{
	struct report *r = ctx;
	int rc;

	if (rec->type != PERF_RECORD_SAMPLE)
		return take_other(r, rec);
	rc = note_time(r->run, rec);
	return rc ? rc : take_sample(r, rec, slot);
}

/* ---- in order ---- */

static struct report_thread *thread_of(struct report_run *run, int32_t tid)
{
	size_t i = run->nslots ? (uint32_t)tid * 2654435761u & (run->nslots - 1) : 0;

	if (run->last && run->last->tid == tid)
		return run->last;
	while (run->nslots && run->slot[i]) {
		if (run->slot[i]->tid == tid)
			return run->last = run->slot[i];
		i = (i + 1) & (run->nslots - 1);
	}
	return NULL;
}

static void put_thread(struct report_run *run, struct report_thread *t)
{
	size_t i = (uint32_t)t->tid * 2654435761u & (run->nslots - 1);

	while (run->slot[i])
		i = (i + 1) & (run->nslots - 1);
	run->slot[i] = t;
}

static struct report_thread *add_thread(struct report_run *run, int32_t tid)
{
	struct report_thread *t;

	if (run->nthreads * 2 >= run->nslots) {
		struct report_run more = {.nslots = run->nslots ? run->nslots * 2 : 64};

		more.slot = calloc(more.nslots, sizeof(*more.slot));
		if (!more.slot)
			return NULL;
		for (size_t i = 0; i < run->nslots; i++)
			if (run->slot[i])
				put_thread(&more, run->slot[i]);
		free(run->slot);
		run->slot = more.slot;
		run->nslots = more.nslots;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->tid = tid;
	put_thread(run, t);
	run->nthreads++;
	return run->last = t;
}

static bool alike(const struct report_pair *a, const struct report_pair *b)
{
	return a->done == b->done && a->torn == b->torn && a->ns == b->ns && !b->flags &&
	       a->key.key == b->key.key && a->key.isa == b->key.isa && a->key.dir == b->key.dir;
}

static enum report_cause cause_of(const struct report *r, const struct report_thread *t,
				  const struct report_event *e, const struct report_pair *ours,
				  const struct report_pair *perf, bool noted)
{
	const struct perf_note *n = &t->note[e->guest];

	if (r->arm64)
		return CAUSE_ARM64;
	if (ours->torn)
		return CAUSE_LOST;
	if (ours->done && !perf->done && !noted)
		return CAUSE_FIRST;
	if (r->q->nvcpus && t->vcpu && n->known && n->vcpu != t->vcpu->vcpu)
		return CAUSE_VCPU;
	if (perf->flags && perf->ns == ours->ns)
		return CAUSE_FLAGS;
	/* At a read perf times the write that came before it; then there is none at the entry. */
	if ((ours->done ? ours : perf)->key.kind == KIND_MMIO)
		return CAUSE_MIXED;
	return CAUSE_PAIRED;
}

static int note_diff(struct report *r, const struct report_key *key, enum report_cause cause,
		     int64_t n, int64_t ns)
{
	struct report_key k = *key;
	struct report_row *row;

	k.cause = (uint8_t)cause;
	row = report_row_get(&r->diff, &k);
	if (!row)
		return -ENOMEM;
	row->more += n;
	row->more_ns += ns;
	return 0;
}

static int compare(struct report *r, const struct report_thread *t, const struct report_event *e,
		   const struct report_pair *ours, const struct report_pair *perf, bool noted)
{
	enum report_cause cause;
	struct report_key key;
	int rc = 0;

	if (alike(ours, perf))
		return 0;
	cause = cause_of(r, t, e, ours, perf, noted);
	if (ours->done && !ours->torn)
		rc = note_diff(r, &ours->key, cause, 1, (int64_t)ours->ns);
	if (!perf->done || rc)
		return rc;
	key = perf->key;
	if (perf->flags) /* under the name that perf shows */
		key.key = perf->raw;
	return note_diff(r, &key, cause, -1, -(int64_t)perf->ns);
}

static int both(struct report *r, struct report_thread *t, const struct report_event *e,
		uint64_t time)
{
	struct report_pair ours[KIND_HALT] = {0}, perf[KIND_HALT] = {0};
	bool noted = t->note[e->guest].known;
	int rc = report_pair_event(r, t, e, time, ours);

	if (!rc)
		rc = report_perf_event(r, t, e, time, perf);
	for (unsigned k = 0; k < KIND_HALT && !rc; k++)
		if ((ours[k].done || perf[k].done) && (k == KIND_VMEXIT || !r->arm64))
			rc = compare(r, t, e, &ours[k], &perf[k], noted);
	return rc;
}

static int watched(struct report *r, struct report_thread *t, const struct report_event *e,
		   int64_t time)
{
	struct report_pair pairs[KIND_HALT] = {0};
	int rc = report_pair_event(r, t, e, (uint64_t)time, pairs);

	return rc ? rc : r->watch->event(r->watch->ctx, e, time, pairs);
}

static int give(void *ctx, int64_t time, const void *slot)
{
	const struct report_event *e = slot; /* aligned, see perfdata_reader */
	struct report *r = ctx;
	struct report_thread *t;

	if (!r->events++)
		r->first = time;
	r->last = time;
	t = thread_of(r->run, e->tid);
	if (!t)
		t = add_thread(r->run, e->tid);
	if (!t)
		return -ENOMEM;
	if (r->watch)
		return watched(r, t, e, time);
	if (r->q->figures && r->q->as_perf)
		return both(r, t, e, (uint64_t)time);
	return r->q->figures ? report_pair_event(r, t, e, (uint64_t)time, NULL)
			     : report_perf_event(r, t, e, (uint64_t)time, NULL);
}

/* ---- the whole ---- */

static uint32_t wanted_types(const struct report_query *q)
{
	static const struct {
		uint8_t kind, type;
	} of[] = {{KIND_MMIO, EV_MMIO},
		  {KIND_IOPORT, EV_PIO},
		  {KIND_MSR, EV_MSR},
		  {KIND_HYPERCALL, EV_HYPERCALL},
		  {KIND_USEREXIT, EV_USEREXIT}};
	uint32_t want = 1u << EV_ENTRY | 1u << EV_EXIT;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
		if (q->kinds >> of[i].kind & 1)
			want |= 1u << of[i].type;
	return want;
}

static void count_open(struct report *r)
{
	for (size_t i = 0; i < r->run->nslots; i++) {
		const struct report_vcpu *v = r->run->slot[i] ? r->run->slot[i]->all : NULL;

		for (; v; v = v->next)
			for (unsigned k = 0; k < KIND_HALT; k++)
				r->open += (v->open >> k & 1) && v->pair[k].counted;
	}
}

static void run_free(struct report_run *run)
{
	for (size_t i = 0; i < run->nslots; i++) {
		struct report_thread *t = run->slot[i];

		while (t && t->all) {
			struct report_vcpu *v = t->all;

			t->all = v->next;
			free(v);
		}
		free(t);
	}
	free(run->slot);
	free(run->cpu_time);
	free(run->loss);
}

static void tables_free(struct report *r)
{
	for (unsigned k = 0; k < KIND_NR; k++) {
		report_table_free(&r->figures[k]);
		report_table_free(&r->perf[k]);
	}
	report_table_free(&r->diff);
}

static int read_once(struct report *r, struct perfdata *p, struct report_run *run)
{
	struct perfdata_reader reader = {sizeof(struct report_event), false, take, give, r};
	int rc;

	run->want = wanted_types(r->q);
	run->ids = kvm_format_ids(r->format);
	for (unsigned i = 0; i < KVM_EVENTS; i++) {
		const struct kvm_layout *l = kvm_format_layout(r->format, i);

		run->fields[i] = fields_of(r, i);
		r->arm64 |= l && l->key_rule == KEY_ARM64;
	}
	r->run = run;
	rc = perfdata_run(p, &reader);
	count_open(r);
	return rc;
}

/*
 * Once more with all losses known from the beginning: a CPU tells of its loss when it has room
 * again, which may be long after pairs of other CPUs have been timed across it.
 */
static int read_again(struct report *r, struct perfdata *p, struct report_run *first)
{
	struct report_run run = {.loss = first->loss,
				 .nlosses = first->nlosses,
				 .loss_to = first->loss_to,
				 .losses_known = true};
	struct report fresh = {.q = r->q,
			       .names = r->names,
			       .format = r->format,
			       .formats = r->formats,
			       .nevents = r->nevents,
			       .recorded = r->recorded,
			       .watch = r->watch,
			       .own_formats = r->own_formats};
	int rc;

	tables_free(r);
	if (r->watch)
		r->watch->again(r->watch->ctx);
	*r = fresh;
	first->loss = NULL;
	rc = read_once(r, p, &run);
	run_free(&run);
	return rc;
}

int report_read(struct report *r, struct perfdata *p)
{
	struct report_run run = {0};
	int rc = read_once(r, p, &run);

	if (!rc && run.nlosses && !perfdata_rewind(p))
		rc = read_again(r, p, &run);
	run_free(&run);
	r->entries = r->seen[EV_ENTRY] && r->seen[EV_EXIT];
	r->run = NULL;
	return rc;
}

void report_free(struct report *r)
{
	tables_free(r);
	kvm_names_free(r->names);
	kvm_format_free(r->format);
}

unsigned report_event(enum kvm_kind kind)
{
	static const uint8_t begins[KIND_HALT] = {
		[KIND_VMEXIT] = EV_EXIT,	 [KIND_MMIO] = EV_MMIO,
		[KIND_IOPORT] = EV_PIO,		 [KIND_MSR] = EV_MSR,
		[KIND_HYPERCALL] = EV_HYPERCALL, [KIND_USEREXIT] = EV_USEREXIT,
	};

	return begins[kind];
}

bool report_recorded(const struct report *r, enum kvm_kind kind)
{
	return r->recorded >> report_event(kind) & 1;
}
