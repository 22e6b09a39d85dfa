// SPDX-License-Identifier: GPL-2.0-only
/* One table of each content, with numbers (symtab.h): a hundred guests of one kernel have one. */
#include <pthread.h>
#include <stdlib.h>

#include "symtab.h"

struct cached {
	struct symtab *tab;
	unsigned idle; /* calls of symcache_trim() for which nobody else had it */
};

struct symcache {
	pthread_mutex_t lock;
	struct cached *tab; /* by id, ascending */
	size_t n, room;
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
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Takes a reference of its own. Without memory the table stays outside and has no number. */
static void keep(struct symcache *c, struct symtab *t)
{
	if (c->n == c->room) {
		size_t room = c->room ? c->room * 2 : 64;
		struct cached *p = reallocarray(c->tab, room, sizeof(*p));

		if (!p)
			return;
		c->tab = p;
		c->room = room;
	}
	symtab_set_id(t, ++c->last_id);
	c->tab[c->n++] = (struct cached){.tab = symtab_ref(t)};
}

struct symtab *symcache_share(struct symcache *c, struct symtab *t)
{
	struct symtab *found = NULL;

	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->n && !found; i++)
		if (symtab_equal(c->tab[i].tab, t))
			found = symtab_ref(c->tab[i].tab);
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
	c->n = kept;
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
