// SPDX-License-Identifier: GPL-2.0-only
/* Offsets of a guest's TSC from a recording (merge.h): its writes, and what was read last. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "merge.h"
#include "store.h"
#include "text.h"

struct taking {
	struct merge_input *guest;
	struct merge_found *found;
};

static int take(void *ctx, const struct store_tsc *t)
{
	struct taking *k = ctx;
	const struct merge_given offset = {.vcpu = t->vcpu, .offset = t->next};
	const struct merge_given scale = {
		.vcpu = t->vcpu, .is_scale = true, .scale = {t->ratio, t->frac_bits}};
	const struct tsc_epoch e = {
		.at = t->at, .prev = t->prev, .next = t->next, .vcpu = (unsigned)t->vcpu};
	int rc;

	if (t->at)
		return merge_found_add(k->found, &e);
	rc = merge_add_given(k->guest, &offset);
	return rc || !t->ratio ? rc : merge_add_given(k->guest, &scale);
}

int merge_default_recording(struct merge *m, const char *path, struct merge_found *found)
{
	struct store *st = NULL;
	char err[600];
	int rc = 0;

	for (size_t i = 0; i < m->nguests && rc != -ENOMEM; i++) {
		struct merge_input *g = &m->guest[i];
		struct taking k = {g, found};

		if (!g->named || g->ngiven)
			continue;
		rc = st ? 0 : store_open(path, &st, err, sizeof(err));
		if (!st)
			break;
		rc = store_tsc(st, g->name, take, &k);
		g->by_default = rc ? NULL : path;
	}
	store_close(st);
	return rc == -ENOMEM ? rc : 0;
}

int merge_add_recording(struct merge *m, struct merge_input *guest, const char *path,
			struct merge_found *found)
{
	struct taking k = {guest, found};
	struct store *st = NULL;
	char shown[200], name[200];
	int rc;

	text_escape(shown, sizeof(shown), path);
	text_escape(name, sizeof(name), guest->name);
	if (!guest->named) {
		snprintf(m->why, sizeof(m->why),
			 "--recording '%s': whose offsets? name the guest: -G NAME=FILE", shown);
		return -EINVAL;
	}
	rc = store_open(path, &st, m->why, sizeof(m->why));
	if (rc)
		return rc;
	rc = store_tsc(st, guest->name, take, &k);
	store_close(st);
	if (rc && rc != -ENOMEM) {
		snprintf(m->why, sizeof(m->why),
			 rc == -ENOENT ? "--recording '%s': it has no TSC offsets of a VM '%s'"
				       : "--recording '%s': TSC offsets of '%s' cannot be read",
			 shown, name);
		return -EINVAL;
	}
	return rc;
}
