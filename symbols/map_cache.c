// SPDX-License-Identifier: GPL-2.0-only
/* Maps by the files that they were made of: a thousand VMMs run the same few (load.h). */
#include <stdlib.h>
#include <string.h>

#include "load.h"

struct kept {
	struct map_key key;
	struct loaded loaded;
};

struct map_cache {
	struct kept *kept;
	size_t n, room;
};

struct map_cache *map_cache_new(void)
{
	return calloc(1, sizeof(struct map_cache));
}

void map_cache_free(struct map_cache *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		symmap_unref(m->kept[i].loaded.map);
	free(m->kept);
	free(m);
}

bool map_cache_get(struct map_cache *m, const struct map_key *key, struct loaded *out)
{
	for (size_t i = 0; i < m->n; i++) {
		if (memcmp(&m->kept[i].key, key, sizeof(*key)) != 0)
			continue;
		*out = m->kept[i].loaded;
		if (out->map)
			symmap_ref(out->map);
		return true;
	}
	return false;
}

void map_cache_put(struct map_cache *m, const struct map_key *key, const struct loaded *l)
{
	if (m->n == m->room) {
		size_t room = m->room ? m->room * 2 : 32;
		struct kept *p = reallocarray(m->kept, room, sizeof(*p));

		if (!p)
			return; /* it is then read again */
		m->kept = p;
		m->room = room;
	}
	m->kept[m->n++] = (struct kept){.key = *key, .loaded = *l};
	if (l->map)
		symmap_ref(l->map);
}

void map_cache_trim(struct map_cache *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++) {
		struct kept k = m->kept[i];

		if (k.loaded.map && !symmap_unused(k.loaded.map))
			m->kept[n++] = k;
		else
			symmap_unref(k.loaded.map);
	}
	m->n = n;
}
