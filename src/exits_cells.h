// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tables of exits: per vCPU and per VM a few cells a kind and key, and `other` for the
 * rest, so that sums stay exact whatever a guest does.
 *
 * An event is added to its vCPU's cell only; the VM's cell gets it when the interval is folded
 * (ex_fold_vcpu), or at once where the vCPU has no cell of that key (its `other`). Histograms are
 * kept in the VM's cells; a vCPU's cells have their own only where somebody looks.
 */
#ifndef KVMTOP_EXITS_CELLS_H
#define KVMTOP_EXITS_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#include "hist.h"
#include "sample.h"

#define EX_VMX_REASON 0x8000ffffu /* the reason and FAILED_VMENTRY; other bits are flags */

struct ex_acc {
	uint64_t count, timed;
	uint64_t sum, min, max; /* ns; min is valid where timed > 0 */
	unsigned __int128 sumsq;
};

struct ex_cell {
	uint64_t key;
	uint32_t isa;
	uint8_t kind, dir; /* enum kvm_kind, enum ev_dir */
	bool idle; /* waiting, not handling */
	bool other;
	uint32_t evicted; /* how often it was given to another key */
	uint32_t vm_gen; /* ex_vm.gen for which .vm was found */
	struct ex_cell
		*vm; /* a vCPU's: the VM's cell of this key, a VM's: the host's; `other`: NULL */
	struct ex_acc now, total;
	struct hist now_hist, total_hist;
};

struct ex_slot {
	uint64_t key;
	uint32_t tag; /* isa and dir */
	struct ex_cell *cell;
};

struct ex_table {
	struct ex_slot *slot; /* without `place` those used last come first */
	uint16_t *place; /* by hash: number + 1 of the key's slot; NULL while there are few */
	uint16_t mask; /* of `place` */
	uint16_t n, room, vacant; /* vacant: slots that were given up, of the n */
	struct ex_cell *other; /* NULL until something did not fit */
};

struct ex_set {
	struct ex_table kind[KIND_NR];
};

struct ex_key {
	uint64_t key;
	uint32_t isa;
	uint8_t kind, dir;
};

static inline uint32_t ex_tag(uint32_t isa, uint8_t dir)
{
	return isa << 8 | dir;
}

static inline unsigned ex_table_home(const struct ex_table *t, uint64_t key, uint32_t tag)
{
	return (unsigned)(((key ^ (uint64_t)tag << 40) * 0x9e3779b97f4a7c15u) >> 48) & t->mask;
}

/* In a table without `place`. */
struct ex_cell *ex_table_search(struct ex_table *t, uint64_t key, uint32_t tag);
/* The cell of a key that has none in it, `other` where that has its most keys. NULL: no memory. */
struct ex_cell *ex_table_make(struct ex_table *t, const struct ex_key *k, unsigned most);

/* The cell of a key, NULL where it has none. A slot that was given up has no key: it is passed by.
 */
static inline struct ex_cell *ex_set_find(struct ex_set *s, const struct ex_key *k)
{
	struct ex_table *t = &s->kind[k->kind];
	uint32_t tag = ex_tag(k->isa, k->dir);

	if (!t->place)
		return ex_table_search(t, k->key, tag);
	for (unsigned i = ex_table_home(t, k->key, tag); t->place[i]; i = (i + 1) & t->mask) {
		const struct ex_slot *at = &t->slot[t->place[i] - 1];

		if (at->key == k->key && at->tag == tag)
			return at->cell;
	}
	return NULL;
}

/* The same, made at first use; `other` when a kind has its most keys. NULL: no memory. */
static inline struct ex_cell *ex_set_get(struct ex_set *s, const struct ex_key *k, unsigned most)
{
	struct ex_table *t = &s->kind[k->kind];
	struct ex_cell *c = ex_set_find(s, k);

	if (c)
		return c;
	return !t->vacant && t->n >= most && t->other ? t->other : ex_table_make(t, k, most);
}

/* The cell of what has no key; NULL: no memory. */
struct ex_cell *ex_set_other(struct ex_set *s, const struct ex_key *k);
/*
 * Makes room where keys that did not fit were busier in this interval than the least busy key:
 * that one's figures go to `other`, its cell becomes empty. To be called after the interval was
 * shown and before ex_set_next(). True when a cell was given up.
 */
bool ex_set_evict(struct ex_set *s);
/* Adds .now to .total of each cell and starts the next interval; totals: of histograms too. */
void ex_set_next(struct ex_set *s, bool totals);
/* Zeroes the totals. */
void ex_set_reset(struct ex_set *s);
/*
 * Adds all of `from` to `into` and empties it (a thread turned out to be of this vCPU or VM).
 * spill(ctx, cell) is told of cells whose key finds no place in `into` but `other`; NULL: nobody.
 */
int ex_set_take(struct ex_set *into, struct ex_set *from, unsigned most,
		void (*spill)(void *ctx, const struct ex_cell *c), void *ctx);
/*
 * Adds the interval of `from` to `into` (a VM's to the host's), and leaves it in `from`. gen: a
 * number of `into` that changes whenever one of its cells was given up; `from` remembers by it
 * which cells belong together.
 */
int ex_set_add_now(struct ex_set *into, uint32_t gen, struct ex_set *from, unsigned most);
void ex_set_free(struct ex_set *s); /* what it points to, not s */

static inline void ex_acc_time(struct ex_acc *a, uint64_t ns)
{
	if (!a->timed || ns < a->min)
		a->min = ns;
	if (ns > a->max)
		a->max = ns;
	a->timed++;
	a->sum += ns;
	a->sumsq += (unsigned __int128)ns * ns;
}

static inline void ex_acc_add(struct ex_acc *into, const struct ex_acc *from)
{
	into->count += from->count;
	if (!from->timed)
		return;
	if (!into->timed || from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	into->timed += from->timed;
	into->sum += from->sum;
	into->sumsq += from->sumsq;
}

/* Relative standard error of the mean in percent, 0 for fewer than two. */
double ex_acc_stderr_pct(const struct ex_acc *a);

/* Calls f for every cell of a table, `other` last. */
#define EX_EACH(table, cellvar)                                                                    \
	for (unsigned ex_i_ = 0; ex_i_ <= (table)->n; ex_i_++)                                     \
		if (((cellvar) = ex_i_ < (table)->n ? (table)->slot[ex_i_].cell : (table)->other))

#endif
