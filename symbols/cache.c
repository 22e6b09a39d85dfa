// SPDX-License-Identifier: GPL-2.0-only
/* One table of each content, with numbers (symtab.h): a hundred guests of one kernel have one. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symtab.h"

struct cached {
	struct symtab *tab;
	unsigned idle; /* calls of symcache_trim() for which nobody else had it */
};

struct symcache {
	pthread_mutex_t lock;
	struct cached *tab; /* by id, ascending */
	size_t n, room;
	uint32_t *slot; /* by hash, open addressing: index in tab + 1 */
	size_t nslots; /* a power of two, more than twice the tables */
	uint32_t last_id;
};

struct symcache *symcache_new(void)
{
	struct symcache *c = calloc(1, sizeof(*c));

	if (c)
		pthread_mutex_init(&c->lock, NULL);
	return c;
}

void symcache_free(struct symcache *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		symtab_unref(c->tab[i].tab);
	free(c->tab);
	free(c->slot);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Where a table equal to t is, or would be. */
static size_t slot_of(const struct symcache *c, const struct symtab *t)
{
	size_t i = symtab_hash(t) & (c->nslots - 1);

	while (c->slot[i] && !symtab_equal(c->tab[c->slot[i] - 1].tab, t))
		i = (i + 1) & (c->nslots - 1);
	return i;
}

static void fill_slots(struct symcache *c)
{
	memset(c->slot, 0, c->nslots * sizeof(*c->slot));
	for (size_t i = 0; i < c->n; i++)
		c->slot[slot_of(c, c->tab[i].tab)] = (uint32_t)i + 1;
}

/* For one more; false: no memory. */
static bool make_room(struct symcache *c)
{
	size_t room = c->room ? c->room * 2 : 64;
	struct cached *tab;
	uint32_t *slot;

	if (c->n < c->room)
		return true;
	tab = reallocarray(c->tab, room, sizeof(*tab));
	if (!tab)
		return false;
	c->tab = tab;
	slot = reallocarray(c->slot, room * 4, sizeof(*slot));
	if (!slot)
		return false;
	c->slot = slot;
	c->room = room;
	c->nslots = room * 4;
	fill_slots(c);
	return true;
}

/* Takes a reference of its own. Without memory the table stays outside and has no number. */
static void keep(struct symcache *c, struct symtab *t)
{
	if (!make_room(c))
		return;
	symtab_set_id(t, ++c->last_id);
	c->tab[c->n++] = (struct cached){.tab = symtab_ref(t)};
	c->slot[slot_of(c, t)] = (uint32_t)c->n;
}

struct symtab *symcache_share(struct symcache *c, struct symtab *t)
{
	struct symtab *found = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->nslots) {
		uint32_t at = c->slot[slot_of(c, t)];

		found = at ? symtab_ref(c->tab[at - 1].tab) : NULL;
	}
	if (!found)
		keep(c, t);
	pthread_mutex_unlock(&c->lock);
	if (!found)
		return t;
	symtab_unref(t);
	return found;
}

/* The place of the first with this number or a higher one. */
static size_t place_of(const struct symcache *c, uint32_t id)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (symtab_id(c->tab[mid].tab) < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool symcache_symbol(struct symcache *c, uint32_t table, uint32_t index, struct symbol *out)
{
	bool ok = false;
	size_t i;

	*out = (struct symbol){0};
	pthread_mutex_lock(&c->lock);
	i = place_of(c, table);
	if (i < c->n && symtab_id(c->tab[i].tab) == table)
		ok = symtab_symbol(c->tab[i].tab, index, out);
	pthread_mutex_unlock(&c->lock);
	return ok;
}

void symcache_trim(struct symcache *c)
{
	size_t kept = 0;

	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->n; i++) {
		struct cached t = c->tab[i];

		t.idle = symtab_unused(t.tab) ? t.idle + 1 : 0;
		if (t.idle > 1)
			symtab_unref(t.tab);
		else
			c->tab[kept++] = t;
	}
	if (kept < c->n) {
		c->n = kept;
		fill_slots(c);
	}
	pthread_mutex_unlock(&c->lock);
}

size_t symcache_count(struct symcache *c)
{
	size_t n;

	pthread_mutex_lock(&c->lock);
	n = c->n;
	pthread_mutex_unlock(&c->lock);
	return n;
}
