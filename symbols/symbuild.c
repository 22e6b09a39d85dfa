// SPDX-License-Identifier: GPL-2.0-only
/*
 * From symbols in any order to a map of shared tables (symtab.h).
 *
 * A kernel's list says where symbols begin and not where they end, and has many names for one
 * address. The rules are here, for all sources alike: settle_aliases(), end_of(), and make_table(),
 * which makes addresses relative, so that KASLR does not keep guests from sharing a table.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "symtab_layout.h"

#define MAX_ITEMS (4u << 20)
#define MAX_NAMES (256u << 20) /* bytes: all symbols of a file may share one long name there */
#define MAX_PARTS 65536 /* pieces of code: each has a table */
#define MAX_NAME 511 /* the kernel's KSYM_NAME_LEN is 512 with its end */
#define MAX_MODULES 60000
#define PAGE 4096u
/* No function is as long as this: what is said to be so has something unnamed behind it. */
#define MAX_GUESSED (256u << 10)
/* Farther apart: another piece of code, with a table of its own. */
#define MAX_GAP (16u << 20)

enum { ITEM_BOUND = 255 }; /* instead of a rank: no code */

struct item {
	uint64_t addr;
	uint32_t size, name;
	uint16_t len, module;
	uint8_t rank;
};

struct range {
	uint64_t lo, hi;
	unsigned module;
};

struct module_name {
	char *name;
	unsigned number;
};

struct symbuild {
	struct item *item;
	size_t n, room;
	char *names; /* not terminated each */
	size_t names_len, names_room;
	struct module_name **module; /* by number, [0] "" */
	size_t nmodule, module_room;
	void *module_tree; /* by name */
	struct range *range;
	size_t nrange, range_room;
	struct symmap_part *part;
	size_t npart, part_room;
};

/* Room for one more of an array. */
static bool more(void *array, size_t n, size_t *room, size_t size)
{
	size_t want = *room ? *room * 2 : 64;
	void **p = array, *q;

	if (n < *room)
		return true;
	q = reallocarray(*p, want, size);
	if (!q)
		return false;
	*p = q;
	*room = want;
	return true;
}

struct symbuild *symbuild_new(void)
{
	struct symbuild *b = calloc(1, sizeof(*b));

	if (b && symbuild_module(b, "", 0) < 0) {
		symbuild_free(b);
		return NULL;
	}
	return b;
}

static void free_nothing(void *p)
{
	(void)p; /* the nodes' data are freed by number */
}

void symbuild_free(struct symbuild *b)
{
	if (!b)
		return;
	tdestroy(b->module_tree, free_nothing);
	for (size_t i = 0; i < b->nmodule; i++) {
		free(b->module[i]->name);
		free(b->module[i]);
	}
	for (size_t i = 0; i < b->npart; i++)
		symtab_unref(b->part[i].tab);
	free(b->module);
	free(b->part);
	free(b->range);
	free(b->names);
	free(b->item);
	free(b);
}

/* --- adding --- */

static int by_name(const void *a, const void *b)
{
	const struct module_name *p = a, *q = b;

	return strcmp(p->name, q->name);
}

static int add_module(struct symbuild *b, const char *name)
{
	struct module_name *m;

	if (b->nmodule == MAX_MODULES)
		return -E2BIG;
	if (!more(&b->module, b->nmodule, &b->module_room, sizeof(*b->module)))
		return -ENOMEM;
	m = malloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->number = (unsigned)b->nmodule;
	m->name = strdup(name);
	if (!m->name || !tsearch(m, &b->module_tree, by_name)) {
		free(m->name);
		free(m);
		return -ENOMEM;
	}
	b->module[b->nmodule++] = m;
	return (int)m->number;
}

int symbuild_module(struct symbuild *b, const char *name, size_t len)
{
	char buf[256];
	struct module_name key = {.name = buf};
	struct module_name **found;

	if (len >= sizeof(buf))
		len = sizeof(buf) - 1;
	memcpy(buf, name, len);
	buf[len] = '\0';
	found = tfind(&key, &b->module_tree, by_name);
	return found ? (int)(*found)->number : add_module(b, buf);
}

static bool room_for_name(struct symbuild *b, size_t len)
{
	size_t want = b->names_room ? b->names_room : 1 << 16;
	char *p;

	while (want - b->names_len < len)
		want *= 2;
	if (want == b->names_room)
		return true;
	p = realloc(b->names, want);
	if (!p)
		return false;
	b->names = p;
	b->names_room = want;
	return true;
}

static struct item *add_item(struct symbuild *b)
{
	if (b->n == MAX_ITEMS || !more(&b->item, b->n, &b->room, sizeof(*b->item)))
		return NULL;
	return &b->item[b->n++];
}

int symbuild_add(struct symbuild *b, uint64_t addr, uint64_t size, enum symbol_rank rank,
		 unsigned module, const char *name, size_t len)
{
	struct item *i;

	if (addr == UINT64_MAX) /* it could not have an end */
		return 0;
	if (len > MAX_NAME)
		len = MAX_NAME;
	if (b->names_len + len > MAX_NAMES)
		return -E2BIG;
	if (!room_for_name(b, len))
		return -ENOMEM;
	i = add_item(b);
	if (!i)
		return b->n == MAX_ITEMS ? -E2BIG : -ENOMEM;
	*i = (struct item){.addr = addr,
			   .size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX,
			   .name = (uint32_t)b->names_len,
			   .len = (uint16_t)len,
			   .module = (uint16_t)module,
			   .rank = (uint8_t)rank};
	memcpy(b->names + b->names_len, name, len);
	b->names_len += len;
	return 0;
}

int symbuild_bound(struct symbuild *b, uint64_t addr)
{
	struct item *i = add_item(b);

	if (!i)
		return b->n == MAX_ITEMS ? -E2BIG : -ENOMEM;
	*i = (struct item){.addr = addr, .rank = ITEM_BOUND};
	return 0;
}

int symbuild_range(struct symbuild *b, unsigned module, uint64_t lo, uint64_t hi)
{
	if (hi <= lo)
		return -EINVAL;
	if (!more(&b->range, b->nrange, &b->range_room, sizeof(*b->range)))
		return -ENOMEM;
	b->range[b->nrange++] = (struct range){.lo = lo, .hi = hi, .module = module};
	return 0;
}

/* --- order --- */

#define DIGIT 11
#define DIGITS (1u << DIGIT)

static void sort_by_digit(const struct item *from, struct item *to, size_t n, unsigned shift)
{
	size_t at[DIGITS] = {0}, sum = 0;

	for (size_t i = 0; i < n; i++)
		at[from[i].addr >> shift & (DIGITS - 1)]++;
	for (size_t d = 0; d < DIGITS; d++) {
		size_t count = at[d];

		at[d] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[at[from[i].addr >> shift & (DIGITS - 1)]++] = from[i];
}

/* By address, stable: a digit a pass, only those in which addresses differ at all. */
static int sort_items(struct symbuild *b)
{
	uint64_t differ = 0;
	bool sorted = true;
	struct item *other;

	for (size_t i = 1; i < b->n; i++) {
		differ |= b->item[i].addr ^ b->item[0].addr;
		sorted = sorted && b->item[i - 1].addr <= b->item[i].addr;
	}
	if (sorted)
		return 0;
	other = reallocarray(NULL, b->n, sizeof(*other));
	if (!other)
		return -ENOMEM;
	for (unsigned shift = 0; shift < 64; shift += DIGIT) {
		struct item *was = b->item;

		if (!(differ >> shift & (DIGITS - 1)))
			continue;
		sort_by_digit(was, other, b->n, shift);
		b->item = other;
		other = was;
	}
	b->room = b->n;
	free(other);
	return 0;
}

/* --- aliases --- */

/*
 * How little a name is meant to be read: leading underscores, or a second name for early code or
 * for a system call of 32-bit programs, which 64-bit ones make too.
 */
static unsigned internal(const char *name, size_t len)
{
	static const char *const second[] = {"__pi_", "__ia32_"};
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(second) / sizeof(second[0]); i++)
		if (len > strlen(second[i]) && !memcmp(name, second[i], strlen(second[i])))
			return MAX_NAME;
	while (n < len && name[n] == '_')
		n++;
	return n;
}

/* The order does not depend on that of the file: the same kernel always has the same names. */
static bool better(const struct symbuild *b, const struct item *p, const struct item *q)
{
	const char *pn, *qn;
	unsigned pu, qu;
	int c;

	if (p->rank != q->rank || p->rank == ITEM_BOUND)
		return p->rank < q->rank;
	pn = b->names + p->name;
	qn = b->names + q->name;
	pu = internal(pn, p->len);
	qu = internal(qn, q->len);
	if (pu != qu)
		return pu < qu;
	if (p->len != q->len)
		return p->len > q->len; /* the longer says more */
	c = memcmp(pn, qn, p->len);
	return c ? c < 0 : strcmp(b->module[p->module]->name, b->module[q->module]->name) < 0;
}

/*
 * One item an address. Code wins over data, which has no name here; a label without a size inside
 * of a function that has one is a part of it.
 */
static void settle_aliases(struct symbuild *b)
{
	uint64_t covered = 0; /* end of the last symbol that had a size */
	size_t kept = 0;

	for (size_t i = 0, end; i < b->n; i = end) {
		struct item best = b->item[i];
		uint32_t size = best.size;

		for (end = i + 1; end < b->n && b->item[end].addr == best.addr; end++) {
			if (b->item[end].size > size)
				size = b->item[end].size;
			if (better(b, &b->item[end], &best))
				best = b->item[end];
		}
		best.size = size;
		if (!size && best.addr < covered)
			continue;
		if (size)
			covered = best.addr + size;
		b->item[kept++] = best;
	}
	b->n = kept;
}

/* --- ends --- */

static int by_lo(const void *a, const void *b)
{
	const struct range *p = a, *q = b;

	return p->lo < q->lo ? -1 : p->lo > q->lo;
}

/* In order, and none over another: a copy of two boots may have that. */
static void sort_ranges(struct symbuild *b)
{
	size_t kept = 0;

	if (b->nrange)
		qsort(b->range, b->nrange, sizeof(*b->range), by_lo);
	for (size_t i = 0; i < b->nrange; i++) {
		struct range r = b->range[i];

		if (kept && r.lo < b->range[kept - 1].hi)
			r.lo = b->range[kept - 1].hi;
		if (r.lo < r.hi)
			b->range[kept++] = r;
	}
	b->nrange = kept;
}

/* The end of the module's range at addr; ranges are in order. */
static uint64_t range_end(const struct symbuild *b, const struct item *it)
{
	size_t lo = 0, hi = b->nrange;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (b->range[mid].hi <= it->addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < b->nrange && b->range[lo].lo <= it->addr && b->range[lo].module == it->module)
		return b->range[lo].hi;
	return UINT64_MAX;
}

/*
 * At the next symbol, whatever it is. Where that is another module's, absurdly far or not there
 * at all, no farther than the page after its own.
 */
static uint64_t end_of(const struct symbuild *b, const struct item *it)
{
	const struct item *next = it + 1 < b->item + b->n ? it + 1 : NULL;
	uint64_t last = next ? next->addr : UINT64_MAX, end;

	if (it->size) {
		end = it->addr + it->size;
		return end > it->addr && end < last ? end : last;
	}
	if (next && next->addr - it->addr <= MAX_GUESSED &&
	    (next->rank == ITEM_BOUND || next->module == it->module))
		return last;
	end = (it->addr | (PAGE - 1)) + 1 + PAGE;
	if (end > it->addr && end < last)
		last = end;
	end = range_end(b, it);
	return end < last ? end : last;
}

static void set_sizes(struct symbuild *b)
{
	for (size_t i = 0; i < b->n; i++) {
		uint64_t size;

		if (b->item[i].rank == ITEM_BOUND)
			continue;
		size = end_of(b, &b->item[i]) - b->item[i].addr;
		b->item[i].size = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
	}
}

/* --- tables --- */

/* Takes the reference. */
static int add_part(struct symbuild *b, const struct symmap_part *part)
{
	if (b->npart == MAX_PARTS || !more(&b->part, b->npart, &b->part_room, sizeof(*b->part))) {
		symtab_unref(part->tab);
		return b->npart == MAX_PARTS ? -E2BIG : -ENOMEM;
	}
	b->part[b->npart++] = *part;
	return 0;
}

/* From the items [from, to), bounds among them: one table, relative to the first. */
static int make_table(struct symbuild *b, struct symcache *cache, size_t from, size_t to)
{
	const struct item *first = &b->item[from], *last = first;
	const char *module = b->module[first->module]->name;
	size_t names_len = strlen(module) + 1, at = names_len;
	struct symtab *t;
	uint32_t n = 0;

	for (size_t i = from; i < to; i++) {
		if (b->item[i].rank == ITEM_BOUND)
			continue;
		names_len += b->item[i].len + 1u;
		last = &b->item[i];
		n++;
	}
	t = symtab_alloc(n, names_len);
	if (!t)
		return -ENOMEM;
	memcpy(t->names, module, at);
	n = 0;
	for (size_t i = from; i < to; i++) {
		const struct item *it = &b->item[i];

		if (it->rank == ITEM_BOUND)
			continue;
		*symtab_offset(t, n) = (uint32_t)(it->addr - first->addr);
		*symtab_entry(t, n++) =
			(struct symtab_entry){.size = it->size, .name = (uint32_t)at};
		memcpy(t->names + at, b->names + it->name, it->len);
		at += it->len + 1u;
	}
	return add_part(b, &(struct symmap_part){.lo = first->addr,
						 .hi = last->addr + last->size,
						 .bias = first->addr,
						 .tab = symtab_shared(cache, t)});
}

/* The items of one piece of code from `from` on: of one module, none far from the one before. */
static size_t run_end(const struct symbuild *b, size_t from)
{
	size_t prev = from, i;

	for (i = from + 1; i < b->n; i++) {
		const struct item *it = &b->item[i];

		if (it->rank == ITEM_BOUND)
			continue;
		if (it->module != b->item[from].module || it->addr - b->item[prev].addr > MAX_GAP ||
		    it->addr - b->item[from].addr >= SYMTAB_PAD - MAX_GAP)
			break;
		prev = i;
	}
	return i;
}

static int make_tables(struct symbuild *b, struct symcache *cache)
{
	int rc = 0;

	for (size_t i = 0, end; !rc && i < b->n; i = end) {
		end = i + 1;
		if (b->item[i].rank == ITEM_BOUND)
			continue;
		end = run_end(b, i);
		rc = make_table(b, cache, i, end);
	}
	return rc;
}

/* --- what is only known to belong to a module --- */

static int add_ranges(struct symbuild *b, struct symcache *cache)
{
	int rc = 0;

	for (size_t r = 0; !rc && r < b->nrange; r++) {
		const struct range *g = &b->range[r];
		struct symmap_part part = {.lo = g->lo, .hi = g->hi, .bias = g->lo};

		part.tab = symtab_nameless(cache, b->module[g->module]->name);
		rc = part.tab ? add_part(b, &part) : -ENOMEM;
	}
	return rc;
}

int symbuild_finish(struct symbuild *b, struct symcache *cache, struct symmap **out)
{
	int rc = sort_items(b);

	*out = NULL;
	if (!rc) {
		settle_aliases(b);
		sort_ranges(b);
		set_sizes(b);
		rc = make_tables(b, cache);
	}
	if (!rc)
		rc = add_ranges(b, cache);
	if (!rc) {
		*out = symmap_new(b->part, b->npart);
		rc = *out ? 0 : -ENOMEM;
	}
	symbuild_free(b);
	return rc;
}
