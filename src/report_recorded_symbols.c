// SPDX-License-Identifier: GPL-2.0-only
/* Samples of a recording's intervals added up (report_recording.h). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
#include "report_recording.h"

static bool same(const struct recorded_symbol *r, const struct snap_symbol *y)
{
	return r->other == y->other && (y->other || r->domain == y->key.domain) &&
	       strcmp(r->name, y->name) == 0 && strcmp(r->module, y->module) == 0;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT64_C(1099511628211);
	return h;
}

static uint64_t hash_of(const char *name, const char *module)
{
	uint64_t h = hash_text(hash_text(UINT64_C(14695981039346656037), name) * 31, module);

	return h ^ h >> 32;
}

static int make_room(struct recorded_samples *r)
{
	size_t n = r->nslots ? r->nslots * 2 : 256;
	struct recorded_symbol *more;
	uint32_t *slot;

	if (r->n * 2 < r->nslots)
		return 0;
	more = reallocarray(r->row, n / 2, sizeof(*more));
	if (!more)
		return -ENOMEM;
	r->row = more;
	slot = calloc(n, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	free(r->slot);
	r->slot = slot;
	r->nslots = n;
	for (size_t i = 0; i < r->n; i++) {
		size_t at = hash_of(r->row[i].name, r->row[i].module) & (n - 1);

		while (slot[at])
			at = (at + 1) & (n - 1);
		slot[at] = (uint32_t)i + 1;
	}
	return 0;
}

static int add_symbol(struct recorded_samples *r, const struct snap_symbol *y)
{
	struct recorded_symbol *row;
	size_t at;

	if (make_room(r))
		return -ENOMEM;
	at = hash_of(y->name, y->module) & (r->nslots - 1);
	while (r->slot[at] && !same(&r->row[r->slot[at] - 1], y))
		at = (at + 1) & (r->nslots - 1);
	if (!r->slot[at]) {
		row = &r->row[r->n];
		*row = (struct recorded_symbol){
			.domain = y->other ? DOMAIN_NR : y->key.domain,
			.other = y->other,
			.name = strdup(y->name),
			.module = strdup(y->module),
		};
		if (!row->name || !row->module) {
			free(row->name);
			free(row->module);
			return -ENOMEM;
		}
		r->slot[at] = (uint32_t)++r->n;
	}
	r->row[r->slot[at] - 1].n += y->samples;
	return 0;
}

static int add_level(struct recorded_samples *r, const struct snapshot *s,
		     const struct snap_samples *of)
{
	int rc = 0;

	if (!value_has(of->n) || !(of->n.v > 0) || of->n.v > 1e15)
		return 0;
	r->all += (uint64_t)of->n.v;
	for (int d = 0; d < DOMAIN_NR; d++)
		if (value_has(of->domain[d]) && fabs(of->domain[d].v) <= 1e3)
			r->domain[d] += of->domain[d].v / 100 * of->n.v;
	for (uint32_t i = of->first; i < of->first + of->rows && !rc; i++)
		if (s->symbols[i].samples) /* others are there for their totals */
			rc = add_symbol(r, &s->symbols[i]);
	return rc;
}

int recorded_samples_add(struct recorded_samples *r, const struct snapshot *s,
			 const struct filter *filter)
{
	int rc = 0;

	if (filter && filter_has_vcpus(filter)) /* of vCPUs no symbols are recorded */
		return 0;
	if (!filter || !filter_has_vms(filter))
		return add_level(r, s, &s->host.sym);
	for (size_t i = 0; i < s->nvms && !rc; i++)
		if (filter_vm(filter, &s->vms[i]))
			rc = add_level(r, s, &s->vms[i].sym);
	return rc;
}

/* Most samples first, `other` last. */
static int by_samples(const void *a, const void *b)
{
	const struct recorded_symbol *x = a, *y = b;

	if (x->other != y->other)
		return x->other ? 1 : -1;
	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return strcmp(x->name, y->name);
}

void recorded_samples_sort(struct recorded_samples *r)
{
	if (r->n)
		qsort(r->row, r->n, sizeof(*r->row), by_samples);
	free(r->slot); /* it was of the order before */
	r->slot = NULL;
	r->nslots = 0;
}

void recorded_samples_free(struct recorded_samples *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->row[i].name);
		free(r->row[i].module);
	}
	free(r->row);
	free(r->slot);
	*r = (struct recorded_samples){0};
}
