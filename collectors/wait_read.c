// SPDX-License-Identifier: GPL-2.0-only
/*
 * Differences of what is shared with the programs (wait_read.h). They go on writing meanwhile:
 * counters that only grow are read as they are, and what is in progress is taken by the same
 * exchange that the programs use, so that each moment is taken once.
 */
#include "wait_read.h"

#include <string.h>

#define STILL 10 /* readings without a change: the place is given to another */

static uint64_t load64(const __u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static struct sw_cell *cell_at(const struct wait_memory *m, uint32_t index, unsigned i)
{
	return &m->set[(size_t)index * SW_SETS + i / SW_WAYS].way[i % SW_WAYS];
}

/* ---- places ---- */

void wait_place_init(struct wait_memory *m, uint32_t index, int32_t tid)
{
	memset(&m->set[(size_t)index * SW_SETS], 0, sizeof(*m->set) * SW_SETS);
	memset(&m->wake[index], 0, sizeof(*m->wake));
	m->thread[index] = (struct sw_thread){.tid = (uint32_t)tid, .cpu = -1, .slot = SW_SLOTS};
}

void wait_place_waiting(struct wait_memory *m, uint32_t index, uint32_t cpu, int64_t now)
{
	struct sw_thread *t = &m->thread[index];

	if (cpu >= m->cpus || t->on || t->cpu >= 0)
		return;
	t->begin = t->queued = t->since = (uint64_t)now;
	t->cpu = (int32_t)cpu;
	for (uint32_t i = 0; i < SW_SLOTS; i++) {
		__u32 none = 0;

		if (!__atomic_compare_exchange_n(&m->cpu[cpu].slot[i], &none, index, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			continue;
		t->slot = i;
		__atomic_fetch_add(&m->cpu[cpu].used, 1, __ATOMIC_SEQ_CST);
		return;
	}
}

void wait_place_end(struct wait_memory *m, uint32_t index)
{
	for (uint32_t c = 0; c < m->cpus; c++)
		for (uint32_t i = 0; i < SW_SLOTS; i++) {
			__u32 its = index;

			if (m->cpu[c].slot[i] == index &&
			    __atomic_compare_exchange_n(&m->cpu[c].slot[i], &its, 0, false,
							__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
				__atomic_fetch_sub(&m->cpu[c].used, 1, __ATOMIC_SEQ_CST);
		}
}

/* ---- who ran ---- */

/* As much of it as there is time for. */
static uint64_t take(struct wait_buffer *b, uint64_t ns)
{
	uint64_t taken = ns < b->left ? ns : b->left;

	b->left -= taken;
	return taken;
}

static void add_part(struct wait_buffer *b, uint64_t id, const __u64 *comm, uint64_t ns)
{
	size_t i = 0;

	while (i < b->n && (b->part[i].other || b->id[i] != id))
		i++;
	if (i == WAIT_PARTS)
		return; /* cannot be: one more than there are cells */
	if (i < b->n) {
		b->part[i].ns += ns;
		return;
	}
	memcpy(b->comm[i], comm, SW_COMM);
	b->comm[i][SW_COMM] = '\0';
	b->id[i] = id;
	b->part[i] = (struct wait_part){
		.vm = id & SW_TASK ? 0 : (uint32_t)id,
		.idle = id == SW_IDLE,
		.comm = id == SW_IDLE ? "" : b->comm[i],
		.ns = ns,
	};
	b->n++;
}

/* A name that no longer comes gives its place away; ns goes on growing under the next. */
static void age(struct sw_cell *c, struct wait_seen *seen, unsigned i, uint64_t grew)
{
	seen->still[i] = grew ? 0 : seen->still[i] + (seen->still[i] < STILL);
	if (seen->still[i] < STILL)
		return;
	__atomic_store_n(&c->id, 0, __ATOMIC_SEQ_CST);
	seen->id[i] = 0;
	seen->still[i] = 0;
}

static void read_cells(struct wait_memory *m, uint32_t index, struct wait_seen *seen,
		       struct wait_buffer *b)
{
	for (unsigned i = 0; i < SW_CELLS; i++) {
		struct sw_cell *c = cell_at(m, index, i);
		uint64_t id = __atomic_load_n(&c->id, __ATOMIC_ACQUIRE), ns = load64(&c->ns);
		uint64_t grew = ns - seen->ns[i], taken;

		if (!id)
			continue;
		taken = take(b, grew);
		seen->id[i] = id;
		seen->ns[i] += taken;
		if (taken)
			add_part(b, id, c->comm, taken);
		age(c, seen, i, grew);
	}
}

/* Where its CPU did not switch for long, who has it is not accounted yet. */
static void read_in_progress(struct wait_memory *m, uint32_t index, int64_t now,
			     struct wait_buffer *b)
{
	struct sw_thread *t = &m->thread[index];
	int32_t cpu = __atomic_load_n(&t->cpu, __ATOMIC_ACQUIRE);
	__u64 since = load64(&t->since), from;
	__u64 comm[SW_COMM / 8];
	const struct sw_cpu *c;
	uint64_t id, taken;
	uint32_t tid, vm;

	if (cpu < 0 || (uint32_t)cpu >= m->cpus || t->slot >= SW_SLOTS)
		return;
	c = &m->cpu[cpu];
	tid = c->tid;
	memcpy(comm, c->comm, sizeof(comm));
	if (!c->seen || tid == t->tid || (int64_t)((uint64_t)now - since) <= 0)
		return;
	vm = tid ? m->vm_of(m->ctx, (int32_t)tid) : 0;
	id = !tid ? SW_IDLE : vm ? vm : sw_task_id(comm[0], comm[1]);
	taken = take(b, (uint64_t)now - since);
	from = since;
	if (!taken)
		return;
	if (__atomic_compare_exchange_n(&t->since, &from, since + taken, false, __ATOMIC_SEQ_CST,
					__ATOMIC_RELAXED))
		add_part(b, id, comm, taken);
	else
		b->left += taken;
}

static void read_other(const struct sw_thread *t, struct wait_seen *seen, struct wait_buffer *b)
{
	uint64_t taken = b->n < WAIT_PARTS ? take(b, load64(&t->other) - seen->other) : 0;

	if (!taken)
		return;
	b->part[b->n++] = (struct wait_part){.other = true, .comm = "", .ns = taken};
	seen->other += taken;
}

/* ---- the rest ---- */

/*
 * Of the kernel's run delay what is in no wait that we saw. Both grow when a wait ends, and are
 * read one after the other: what only one has by now is the other's in the next reading.
 */
static void read_missed(const struct sw_thread *t, uint64_t ended, const uint64_t *delay,
			struct wait_seen *seen, struct wait_buffer *b, struct wait_reading *out)
{
	uint64_t missed;
	int64_t apart;

	out->has_missed = delay && seen->has_delay && *delay >= seen->delay;
	if (out->has_missed) {
		apart = (int64_t)(*delay - seen->delay) - (int64_t)ended;
		missed = apart + seen->ahead > 0 ? (uint64_t)(apart + seen->ahead) : 0;
		/* Told at its end, a wait may be older than the reading before. */
		out->missed_ns = take(b, missed);
		out->cut = out->missed_ns < missed;
		seen->ahead = apart < 0 ? apart : 0;
	}
	/* Of the wait that was there before we looked, the kernel will tell all. */
	seen->has_delay = delay && (t->cpu < 0 || t->waits);
	seen->delay = delay ? *delay : 0;
}

static void read_wake(const struct sw_wake *w, struct wait_seen *seen, struct wait_buffer *b)
{
	b->wake = (struct hist){.octave = b->room};
	for (unsigned o = 0, n = 0; o < SW_OCTAVES; o++) {
		uint32_t any = 0;

		for (unsigned i = 0; i < SW_STEPS; i++) {
			uint32_t now = __atomic_load_n(&w->n[o][i], __ATOMIC_RELAXED);

			b->room[n][i] = now - seen->wake.n[o][i];
			any |= b->room[n][i];
			seen->wake.n[o][i] = now;
		}
		if (any) {
			b->wake.used |= UINT64_C(1) << o;
			n++;
		}
	}
}

void wait_read(struct wait_memory *m, uint32_t index, int64_t now, const uint64_t *delay,
	       struct wait_seen *seen, struct wait_buffer *buf, struct wait_reading *out)
{
	const struct sw_thread *t = &m->thread[index];
	uint64_t done = load64(&t->done), wakeups = load64(&t->wakeups);

	out->time = now;
	out->dt = seen->time ? now - seen->time : 0;
	buf->left = seen->time ? (uint64_t)(out->dt > 0 ? out->dt : 0) : UINT64_MAX;
	seen->time = now;
	buf->n = 0;
	read_cells(m, index, seen, buf);
	read_in_progress(m, index, now, buf);
	read_other(t, seen, buf);
	out->part = buf->part;
	out->n = buf->n;
	out->missed_ns = 0;
	out->cut = false;
	read_missed(t, done - seen->done, delay, seen, buf, out);
	seen->done = done;
	out->wakeups = wakeups - seen->wakeups;
	seen->wakeups = wakeups;
	out->wake = NULL;
	if (out->wakeups) {
		read_wake(&m->wake[index], seen, buf);
		out->wake = &buf->wake;
	}
}

uint64_t wait_switches(const struct wait_memory *m, uint32_t *seen)
{
	uint64_t n = 0;

	for (uint32_t c = 0; c < m->cpus; c++) {
		uint32_t now = __atomic_load_n(&m->cpu[c].switches, __ATOMIC_RELAXED);

		n += now - seen[c];
		seen[c] = now;
	}
	return n;
}
