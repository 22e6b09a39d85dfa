// SPDX-License-Identifier: GPL-2.0-only
/* Symbol tables and address spaces made of them: lookup, references (symbols.h, symtab.h). */
#include <stdlib.h>
#include <string.h>

#include "symtab_layout.h"

struct symmap {
	_Atomic unsigned refs;
	size_t n;
	size_t largest; /* the part with the most symbols: the kernel, asked first */
	struct symmap_part part[]; /* by lo, not overlapping */
};

/* --- tables --- */

static size_t nodes(size_t n)
{
	return (n + SYMTAB_NODE - 1) / SYMTAB_NODE;
}

struct symtab *symtab_alloc(uint32_t n, size_t names_len)
{
	const size_t line = SYMTAB_NODE * sizeof(uint32_t),
		     head = (sizeof(struct symtab) + 63) / 64 * 64;
	size_t nleaf = nodes(n), lines = 0, bytes;
	struct symtab *t;
	char *p;

	for (size_t k = nleaf; k > 1; k = nodes(k))
		lines += nodes(k);
	/* Everything begins on a cache line. */
	bytes = head + nleaf * sizeof(struct symtab_leaf) + lines * line +
		(names_len + 63) / 64 * 64;
	t = aligned_alloc(64, bytes);
	if (!t)
		return NULL;
	memset(t, 0, bytes);
	p = (char *)t + head;
	t->leaf = (struct symtab_leaf *)(void *)p;
	for (size_t i = 0; i < nleaf; i++)
		memset(t->leaf[i].offset, 0xff, line); /* SYMTAB_PAD */
	p += nleaf * sizeof(struct symtab_leaf);
	for (size_t k = nleaf; k > 1; k = nodes(k)) {
		t->level[t->nlevels++] = (uint32_t *)(void *)p;
		memset(p, 0xff, nodes(k) * line);
		p += nodes(k) * line;
	}
	t->names = p;
	t->module = t->names;
	t->names_len = names_len;
	t->nleaf = nleaf;
	t->n = n;
	t->bytes = bytes;
	atomic_store(&t->refs, 1);
	return t;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

static uint64_t hash_bytes(uint64_t h, const void *data, size_t len)
{
	const char *p = data;
	uint64_t v;

	for (; len >= sizeof(v); len -= sizeof(v), p += sizeof(v)) {
		memcpy(&v, p, sizeof(v));
		h = mix(h, v);
	}
	v = 0;
	memcpy(&v, p, len);
	return mix(h, v ^ (uint64_t)len << 56);
}

static void seal(struct symtab *t)
{
	size_t below = t->nleaf;

	for (size_t i = 0; i < below && t->nlevels; i++)
		t->level[0][i] = t->leaf[i].offset[0];
	for (uint32_t l = 1; l < t->nlevels; l++) {
		below = nodes(below);
		for (size_t i = 0; i < below; i++)
			t->level[l][i] = t->level[l - 1][i * SYMTAB_NODE];
	}
	t->hash = hash_bytes(t->n, t->names, t->names_len);
	if (t->n)
		t->hash = hash_bytes(t->hash, t->leaf, t->nleaf * sizeof(*t->leaf));
}

struct symtab *symtab_shared(struct symcache *cache, struct symtab *t)
{
	seal(t);
	return cache ? symcache_share(cache, t) : t;
}

struct symtab *symtab_nameless(struct symcache *cache, const char *module)
{
	size_t len = strlen(module) + 1;
	struct symtab *t = symtab_alloc(0, len);

	if (!t)
		return NULL;
	memcpy(t->names, module, len);
	return symtab_shared(cache, t);
}

struct symtab *symtab_ref(struct symtab *t)
{
	atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
	return t;
}

void symtab_unref(struct symtab *t)
{
	if (t && atomic_fetch_sub(&t->refs, 1) == 1)
		free(t);
}

uint32_t symtab_id(const struct symtab *t)
{
	return t->id;
}

void symtab_set_id(struct symtab *t, uint32_t id)
{
	t->id = id;
}

bool symtab_unused(const struct symtab *t)
{
	return atomic_load(&t->refs) == 1;
}

const char *symtab_module(const struct symtab *t)
{
	return t->module;
}

size_t symtab_count(const struct symtab *t)
{
	return t->n;
}

uint64_t symtab_hash(const struct symtab *t)
{
	return t->hash;
}

bool symtab_equal(const struct symtab *a, const struct symtab *b)
{
	return a->hash == b->hash && a->n == b->n && a->names_len == b->names_len &&
	       (!a->n || memcmp(a->leaf, b->leaf, a->nleaf * sizeof(*a->leaf)) == 0) &&
	       memcmp(a->names, b->names, a->names_len) == 0;
}

static void symbol_at(const struct symtab *t, uint32_t i, uint64_t bias, struct symbol *out)
{
	const struct symtab_entry *e = symtab_entry(t, i);

	*out = (struct symbol){.name = t->names + e->name,
			       .module = t->module,
			       .start = *symtab_offset(t, i) + bias,
			       .size = e->size,
			       .table = t->id,
			       .index = i};
}

bool symtab_symbol(const struct symtab *t, uint32_t index, struct symbol *out)
{
	if (index >= t->n) {
		*out = (struct symbol){.module = t->module, .table = t->id};
		return false;
	}
	symbol_at(t, index, 0, out);
	return true;
}

/* How many of a node's offsets are at or below; without a branch, and as vectors. */
static unsigned count_below(const uint32_t *node, uint32_t rel)
{
	unsigned below = 0;

	for (unsigned i = 0; i < SYMTAB_NODE; i++)
		below += node[i] <= rel;
	return below;
}

/* The last symbol at or below; false when all are above. */
static bool find_below(const struct symtab *t, uint32_t rel, uint32_t *index)
{
	size_t pos = 0;
	unsigned below;

	for (uint32_t l = t->nlevels; l--;) {
		below = count_below(t->level[l] + pos * SYMTAB_NODE, rel);
		if (!below)
			return false;
		pos = pos * SYMTAB_NODE + below - 1;
	}
	if (!t->n)
		return false;
	/* All three lines of the leaf at once, not the second when the first has come. */
	__builtin_prefetch(&t->leaf[pos].entry[0]);
	__builtin_prefetch(&t->leaf[pos].entry[SYMTAB_NODE / 2]);
	below = count_below(t->leaf[pos].offset, rel);
	*index = (uint32_t)(pos * SYMTAB_NODE) + below - 1;
	return below;
}

/* --- maps --- */

static int by_lo(const void *a, const void *b)
{
	const struct symmap_part *p = a, *q = b;

	return p->lo < q->lo ? -1 : p->lo > q->lo;
}

/* Puts the parts of one sort (with symbols or without) into `out`, in order, none over another. */
static size_t pick(const struct symmap_part *part, size_t n, bool nameless, struct symmap_part *out)
{
	size_t picked = 0, kept = 0;

	for (size_t i = 0; i < n; i++)
		if ((part[i].tab->n == 0) == nameless)
			out[picked++] = part[i];
	qsort(out, picked, sizeof(*out), by_lo);
	for (size_t i = 0; i < picked; i++) {
		struct symmap_part p = out[i];

		if (kept && p.lo < out[kept - 1].hi)
			p.lo = out[kept - 1].hi;
		if (p.lo < p.hi)
			out[kept++] = p;
	}
	return kept;
}

/* Merges both sorts into m: of nameless ones what lies between the others. */
static void merge(struct symmap *m, const struct symmap_part *named, size_t nnamed,
		  const struct symmap_part *nameless, size_t nnameless)
{
	size_t k = 0;

	for (size_t i = 0; i < nnameless; i++) {
		struct symmap_part p = nameless[i];

		while (k < nnamed && named[k].lo < p.hi) {
			struct symmap_part gap = p;

			gap.hi = named[k].lo;
			if (gap.lo < gap.hi)
				m->part[m->n++] = gap;
			if (p.lo < named[k].hi)
				p.lo = named[k].hi;
			if (named[k].hi > p.hi)
				break; /* it reaches into the next one too */
			m->part[m->n++] = named[k++];
		}
		if (p.lo < p.hi)
			m->part[m->n++] = p;
	}
	while (k < nnamed)
		m->part[m->n++] = named[k++];
	for (size_t i = 0; i < m->n; i++) {
		symtab_ref(m->part[i].tab);
		if (m->part[i].tab->n > m->part[m->largest].tab->n)
			m->largest = i;
	}
}

struct symmap *symmap_new(const struct symmap_part *part, size_t n)
{
	struct symmap_part *named = calloc(n + 1, sizeof(*named));
	struct symmap_part *nameless = calloc(n + 1, sizeof(*nameless));
	size_t nnamed = 0, nnameless = 0;
	struct symmap *m = NULL;

	if (named && nameless) {
		nnamed = pick(part, n, false, named);
		nnameless = pick(part, n, true, nameless);
		m = malloc(sizeof(*m) + (2 * nnamed + nnameless) * sizeof(*part));
	}
	if (m) {
		atomic_init(&m->refs, 1);
		m->n = m->largest = 0;
		merge(m, named, nnamed, nameless, nnameless);
	}
	free(named);
	free(nameless);
	return m;
}

struct symmap *symmap_ref(struct symmap *m)
{
	atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
	return m;
}

void symmap_unref(struct symmap *m)
{
	if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
		return;
	for (size_t i = 0; i < m->n; i++)
		symtab_unref(m->part[i].tab);
	free(m);
}

bool symmap_unused(const struct symmap *m)
{
	return atomic_load(&m->refs) == 1;
}

bool symmap_equal(const struct symmap *a, const struct symmap *b)
{
	if (a == b)
		return true;
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		const struct symmap_part *p = &a->part[i], *q = &b->part[i];

		if (p->lo != q->lo || p->hi != q->hi || p->bias != q->bias || p->tab != q->tab)
			return false;
	}
	return true;
}

size_t symmap_parts(const struct symmap *m, const struct symmap_part **out)
{
	*out = m->part;
	return m->n;
}

static const struct symmap_part *part_of(const struct symmap *m, uint64_t addr)
{
	size_t lo = m->largest, n = m->n;

	if (n && addr - m->part[lo].lo < m->part[lo].hi - m->part[lo].lo)
		return &m->part[lo];
	lo = 0;
	while (n > 1) {
		size_t half = n / 2;

		lo = m->part[lo + half].lo <= addr ? lo + half : lo;
		n -= half;
	}
	return n && m->part[lo].lo <= addr && addr < m->part[lo].hi ? &m->part[lo] : NULL;
}

bool symmap_lookup(const struct symmap *m, uint64_t addr, struct symbol *out)
{
	const struct symmap_part *p = part_of(m, addr);
	uint64_t rel;
	uint32_t i;

	*out = (struct symbol){0};
	if (!p)
		return false;
	out->module = p->tab->module;
	out->table = p->tab->id;
	rel = addr - p->bias;
	if (rel >= SYMTAB_PAD || !find_below(p->tab, (uint32_t)rel, &i))
		return false;
	if (rel - *symtab_offset(p->tab, i) >= symtab_entry(p->tab, i)->size)
		return false;
	symbol_at(p->tab, i, p->bias, out);
	return true;
}

bool symmap_find(const struct symmap *m, const char *name, struct symbol *out)
{
	for (size_t k = 0; k < m->n; k++) {
		const struct symmap_part *p = &m->part[k];

		for (uint32_t i = 0; i < p->tab->n; i++) {
			if (strcmp(p->tab->names + symtab_entry(p->tab, i)->name, name) != 0)
				continue;
			symbol_at(p->tab, i, p->bias, out);
			/* A part may show less than its table has. */
			if (out->start >= p->lo && out->start < p->hi)
				return true;
		}
	}
	*out = (struct symbol){0};
	return false;
}

size_t symmap_count(const struct symmap *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += m->part[i].tab->n;
	return n;
}

size_t symmap_bytes(const struct symmap *m)
{
	size_t n = sizeof(*m) + m->n * sizeof(m->part[0]);

	for (size_t i = 0; i < m->n; i++)
		n += m->part[i].tab->bytes;
	return n;
}
