// SPDX-License-Identifier: GPL-2.0-only
/* Whether the TSCs of the host's CPUs agree (merge_sync.h). */
#include "merge_sync.h"

#include <stdlib.h>
#include <string.h>

#include "tracetext.h"

#define THREADS 4096 /* vCPU threads that are remembered; of two that share a place the last */

/* A thread that entered guest mode and has not left it. */
struct inside {
	int tid; /* 0: none */
	unsigned cpu, other;
	bool elsewhere; /* and was seen on `other` since, first at `at` */
	uint64_t at;
};

struct merge_sync {
	struct inside thread[THREADS];
};

struct merge_sync *merge_sync_new(void)
{
	return calloc(1, sizeof(struct merge_sync));
}

void merge_sync_free(struct merge_sync *s)
{
	free(s);
}

static bool is(const struct tracetext_event *e, const char *name)
{
	return e->name_len == strlen(name) && memcmp(e->text + e->name, name, e->name_len) == 0;
}

/* The exit that belongs to the entry: what was between the two elsewhere came after it. */
static bool leaves(struct inside *t, const struct tracetext_event *e, struct merge_apart *apart)
{
	bool found = t->elsewhere && e->ts > t->at;

	*apart = (struct merge_apart){t->other, e->ts - t->at};
	t->tid = 0;
	return found;
}

bool merge_sync_apart(struct merge_sync *s, const struct tracetext_event *e,
		      struct merge_apart *apart)
{
	struct inside *t = &s->thread[(unsigned)e->pid % THREADS];
	bool entry = is(e, "kvm_entry"), left = is(e, "kvm_exit");

	if (e->lost) /* an exit may be among what was lost */
		memset(s, 0, sizeof(*s));
	if (!entry && !left)
		return false;
	if (t->tid == e->pid && t->cpu != e->cpu) {
		if (!t->elsewhere)
			t->at = e->ts;
		t->elsewhere = true;
		t->other = e->cpu;
		return false;
	}
	if (left)
		return t->tid == e->pid && leaves(t, e, apart);
	*t = (struct inside){.tid = e->pid, .cpu = e->cpu};
	return false;
}
