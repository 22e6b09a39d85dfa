// SPDX-License-Identifier: GPL-2.0-only
/* The last slow exits of a VM (exits_slow.h). */
#include "exits_slow.h"

#include <stdlib.h>

#include "exits.h"
#include "inventory.h"

/* NULL: no memory. */
static struct ex_slow *of(struct ex_vm *vm)
{
	if (!vm->slow)
		vm->slow = calloc(1, sizeof(*vm->slow));
	return vm->slow;
}

void ex_slow_count(struct ex_vm *vm, unsigned n)
{
	struct ex_slow *s = n ? of(vm) : NULL;

	if (s)
		s->now += n;
}

static void put(struct ex_slow *s, const struct ex_slow_line *line)
{
	s->line[s->next] = *line;
	s->next = (s->next + 1) % EX_SLOW_LINES;
	if (s->n < EX_SLOW_LINES)
		s->n++;
	s->fresh++;
}

void ex_slow_add(struct ex_vm *vm, const struct inv_vcpu *vcpu, const struct slow_exit *x)
{
	const struct ex_slow_line line = {.x = *x, .vcpu = vcpu ? vcpu->id : 0};
	struct ex_slow *s = of(vm);

	if (s)
		put(s, &line);
}

const struct ex_slow_line *ex_slow_line(const struct ex_slow *s, unsigned i)
{
	return &s->line[(s->next + EX_SLOW_LINES - s->n + i) % EX_SLOW_LINES];
}

unsigned ex_slow_fresh(const struct ex_slow *s)
{
	return s->fresh < s->n ? s->fresh : s->n;
}

/* Of one that was provisional for longer only the lines of this interval: they come after all
 * others. */
void ex_slow_take(struct ex_vm *into, struct ex_vm *from)
{
	struct ex_slow *f = from->slow, *t = f ? of(into) : NULL;

	if (!t)
		return;
	for (unsigned i = f->n - ex_slow_fresh(f); i < f->n; i++)
		put(t, ex_slow_line(f, i));
	t->now += f->now;
	t->total += f->total;
	from->slow = NULL;
	free(f);
}

void ex_slow_next(struct ex_slow *s)
{
	if (!s)
		return;
	s->total += s->now;
	s->now = 0;
	s->fresh = 0;
}

void ex_slow_reset(struct ex_slow *s)
{
	if (s)
		s->total = 0;
}
