// SPDX-License-Identifier: GPL-2.0-only
/* Samples of a recording's intervals added up (report_recording.h). */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "filter.h"
#include "report_recording.h"

static bool same(const void *rows, uint32_t row, const void *what)
{
	const struct recorded_symbol *r = (const struct recorded_symbol *)rows + row;
	const struct snap_symbol *y = what;

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

static int add_symbol(struct recorded_samples *r, const struct snap_symbol *y)
{
	struct recorded_symbol *row;
	uint32_t *at;

	if (report_slots_room(&r->slots, &r->row, r->n, sizeof(*r->row)))
		return -ENOMEM;
	at = report_slots_find(&r->slots, hash_of(y->name, y->module), same, r->row, y);
	if (!*at) {
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
		*at = (uint32_t)++r->n;
	}
	r->row[*at - 1].n += y->samples;
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
	report_slots_free(&r->slots); /* they were of the order before */
}

void recorded_samples_free(struct recorded_samples *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->row[i].name);
		free(r->row[i].module);
	}
	free(r->row);
	report_slots_free(&r->slots);
	*r = (struct recorded_samples){0};
}
