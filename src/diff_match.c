// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which VM of one side is which of the other (diff.h): what the user says, then the UUID, then the
 * name. A name that kvmtop made of a process's number says nothing about another boot; within one,
 * process and its start are the same process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "filter.h"
#include "text.h"

int64_t diff_pair_of(const struct diff *d, int side, uint32_t vm)
{
	for (size_t i = 0; i < d->npairs; i++)
		if ((side ? d->pair[i].b : d->pair[i].a) == vm)
			return (int64_t)i;
	return -1;
}

static bool is_paired(const struct diff *d, int side, uint32_t vm)
{
	return diff_pair_of(d, side, vm) >= 0;
}

static bool alike(const struct diff *d, const struct diff_vm *a, const struct diff_vm *b,
		  enum diff_by by)
{
	switch (by) {
	case DIFF_BY_UUID:
		return *a->uuid && strcmp(a->uuid, b->uuid) == 0;
	case DIFF_BY_NAME:
		return !a->by_pid && !b->by_pid && strcmp(a->name, b->name) == 0;
	case DIFF_BY_PROCESS:
		if (d->side[0].part != DIFF_WHOLE) /* of one file */
			return strcmp(a->vm_id, b->vm_id) == 0;
		return *a->vm_id && strcmp(a->vm_id, b->vm_id) == 0 && !d->side[0].boots &&
		       !d->side[1].boots && *d->side[0].boot_id &&
		       strcmp(d->side[0].boot_id, d->side[1].boot_id) == 0;
	default:
		return false;
	}
}

static void pair_all(struct diff *d, enum diff_by by)
{
	for (uint32_t a = 0; a < d->side[0].nvm; a++) {
		if (is_paired(d, 0, a))
			continue;
		for (uint32_t b = 0; b < d->side[1].nvm; b++) {
			if (!alike(d, &d->side[0].vm[a], &d->side[1].vm[b], by) ||
			    is_paired(d, 1, b))
				continue;
			d->pair[d->npairs++] = (struct diff_pair){a, b, by};
			break;
		}
	}
}

/* By name, UUID or vm_id. -1: none. */
static int64_t find_vm(const struct diff_side *s, const char *word, size_t n)
{
	for (size_t i = 0; i < s->nvm; i++) {
		const char *const texts[] = {s->vm[i].name, s->vm[i].uuid, s->vm[i].vm_id};

		for (size_t k = 0; k < 3 && n; k++)
			if (strncmp(texts[k], word, n) == 0 && !texts[k][n])
				return (int64_t)i;
	}
	return -1;
}

/* Names may have a "=" too: the first place that makes sense counts. */
static int add_map(struct diff *d, const char *map, char *err, size_t size)
{
	char safe[120];

	for (const char *eq = strchr(map, '='); eq; eq = strchr(eq + 1, '=')) {
		int64_t a = find_vm(&d->side[0], map, (size_t)(eq - map));
		int64_t b = find_vm(&d->side[1], eq + 1, strlen(eq + 1));

		if (a < 0 || b < 0)
			continue;
		if (is_paired(d, 0, (uint32_t)a) || is_paired(d, 1, (uint32_t)b)) {
			text_escape(safe, sizeof(safe), map);
			snprintf(err, size, "--map '%s': one of them is mapped already", safe);
			return -EINVAL;
		}
		d->pair[d->npairs++] = (struct diff_pair){(uint32_t)a, (uint32_t)b, DIFF_BY_MAP};
		return 0;
	}
	text_escape(safe, sizeof(safe), map);
	snprintf(err, size, "--map '%s': give the name or UUID of a VM of A, =, and of one of B",
		 safe);
	return -EINVAL;
}

/* "web01, db01 and 3 more" */
static void list_names(const struct diff_side *s, char *buf, size_t size)
{
	size_t at = 0;

	snprintf(buf, size, "%s", "none");
	for (size_t i = 0; i < s->nvm; i++) {
		char safe[48];

		text_escape(safe, sizeof(safe), s->vm[i].name);
		if (i == 3) {
			snprintf(buf + at, size - at, " and %zu more", s->nvm - i);
			return;
		}
		at += (size_t)snprintf(buf + at, size - at, "%s%s", i ? ", " : "", safe);
	}
}

/* No VM was there at all: the hosts can be compared. */
static bool only_hosts(const struct diff *d)
{
	for (int i = 0; i < 2; i++)
		if (d->side[i].nvm || d->side[i].by_perf || d->side[i].part != DIFF_WHOLE ||
		    (d->side[i].filter && filter_has_vms(d->side[i].filter)))
			return false;
	return true;
}

int diff_match(struct diff *d, const char *const *map, size_t nmap, char *err, size_t size)
{
	char a[240], b[240];
	int rc = 0;

	d->pair = calloc(d->side[0].nvm + 1, sizeof(*d->pair));
	if (!d->pair)
		return -ENOMEM;
	for (size_t i = 0; i < nmap && !rc; i++)
		rc = add_map(d, map[i], err, size);
	if (rc)
		return rc;
	pair_all(d, DIFF_BY_UUID);
	pair_all(d, DIFF_BY_NAME);
	pair_all(d, DIFF_BY_PROCESS);
	if (!d->npairs && (d->side[0].by_perf || d->side[1].by_perf) && d->side[0].nvm == 1 &&
	    d->side[1].nvm == 1)
		d->pair[d->npairs++] = (struct diff_pair){0, 0, DIFF_BY_ONE};
	if (d->npairs || only_hosts(d))
		return 0;
	list_names(&d->side[0], a, sizeof(a));
	list_names(&d->side[1], b, sizeof(b));
	snprintf(err, size, "no VM is on both sides (A: %s; B: %s)%s", a, b,
		 d->side[0].nvm && d->side[1].nvm ? ": say who is whom with --map A=B" : "");
	return -ENOENT;
}
