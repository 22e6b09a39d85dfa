// SPDX-License-Identifier: GPL-2.0-only
/*
 * The snapshot's memory: one arena and one reference count.
 *
 * The arena is a list of blocks that are only ever added to while the snapshot is made, and
 * freed together by whoever drops the last reference.
 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"

#define FIRST_BLOCK ((size_t)8 << 10)
#define LARGEST_BLOCK ((size_t)256 << 10)
#define ALIGN _Alignof(max_align_t)

struct block {
	struct block *next;
	size_t size, used;
	max_align_t data[];
};

struct box {
	struct snapshot s; /* first: what callers hold */
	atomic_uint refs;
	struct block *blocks; /* the newest first */
	size_t next_size;
};

static struct box *box_of(struct snapshot *s)
{
	return (struct box *)s;
}

struct snapshot *snapshot_new(void)
{
	return snapshot_new_for(FIRST_BLOCK);
}

struct snapshot *snapshot_new_for(size_t bytes)
{
	struct box *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	atomic_init(&b->refs, 1);
	b->next_size = bytes < FIRST_BLOCK ? FIRST_BLOCK : bytes;
	if (b->next_size > LARGEST_BLOCK)
		b->next_size = LARGEST_BLOCK;
	b->s.bytes = sizeof(*b);
	return &b->s;
}

struct snapshot *snapshot_ref(struct snapshot *s)
{
	atomic_fetch_add_explicit(&box_of(s)->refs, 1, memory_order_relaxed);
	return s;
}

void snapshot_unref(struct snapshot *s)
{
	struct block *next;
	struct box *b;

	if (!s)
		return;
	b = box_of(s);
	/* What other readers did with the memory must be over before it is freed. */
	if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (struct block *k = b->blocks; k; k = next) {
		next = k->next;
		free(k);
	}
	free(b);
}

size_t snapshot_used(const struct snapshot *s)
{
	size_t n = 0;

	for (const struct block *k = ((const struct box *)s)->blocks; k; k = k->next)
		n += k->used;
	return n;
}

static void put_block(struct box *b, struct block *k, size_t size, size_t need)
{
	k->size = size;
	b->s.bytes += sizeof(*k) + size;
	/* A large table in its own block must not hide the rest of the block in use. */
	if (b->blocks && size == need) {
		k->next = b->blocks->next;
		b->blocks->next = k;
	} else {
		k->next = b->blocks;
		b->blocks = k;
	}
}

static struct block *add_block(struct box *b, size_t need, bool zero)
{
	size_t size = b->next_size > need ? b->next_size : need;
	struct block *k = zero ? calloc(1, sizeof(*k) + size) : malloc(sizeof(*k) + size);

	if (!k)
		return NULL;
	k->used = 0;
	b->next_size = b->next_size * 2 < LARGEST_BLOCK ? b->next_size * 2 : LARGEST_BLOCK;
	put_block(b, k, size, need);
	return k;
}

/*
 * Only what has to be zero is made so, not the block around it. Of a large table the C library
 * knows which memory is zero anyway.
 */
static void *arena(struct box *b, size_t bytes, size_t align, bool zero)
{
	struct block *k = b->blocks;
	bool is_zero = false;
	size_t at = 0;
	void *p;

	if (k)
		at = (k->used + align - 1) & ~(align - 1);
	if (!k || at > k->size || bytes > k->size - at) {
		is_zero = zero && bytes >= LARGEST_BLOCK;
		k = add_block(b, bytes, is_zero);
		at = 0;
	}
	if (!k)
		return NULL;
	p = (char *)k->data + at;
	k->used = at + bytes;
	if (zero && !is_zero)
		memset(p, 0, bytes);
	return p;
}

static void *alloc_rows(struct snapshot *s, size_t n, size_t size, bool zero)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
		return NULL;
	return arena(box_of(s), bytes ? bytes : 1, ALIGN, zero);
}

void *snapshot_alloc(struct snapshot *s, size_t n, size_t size)
{
	return alloc_rows(s, n, size, true);
}

void *snapshot_alloc_unset(struct snapshot *s, size_t n, size_t size)
{
	return alloc_rows(s, n, size, false);
}

const char *snapshot_str(struct snapshot *s, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	char *p;

	if (!len)
		return "";
	p = arena(box_of(s), len + 1, 1, false);
	if (!p)
		return "";
	memcpy(p, text, len + 1);
	return p;
}

const char *snapshot_printf(struct snapshot *s, const char *fmt, ...)
{
	char text[256]; /* nearly all are shorter, and then made once */
	char *p = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (n > 0)
		p = arena(box_of(s), (size_t)n + 1, 1, false);
	if (!p)
		return "";
	if ((size_t)n < sizeof(text))
		return memcpy(p, text, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

const struct snap_source *snapshot_source(const struct snapshot *s, const char *name)
{
	for (size_t i = 0; i < s->nsources; i++)
		if (!strcmp(s->sources[i].name, name))
			return &s->sources[i];
	return NULL;
}

double snapshot_waited_in_exits(const struct snap_vm *vm)
{
	double most = value_has(vm->ex.off_pct) ? vm->ex.off_pct.v : vm->ex.pct.v;

	if (!value_has(vm->use.steal))
		return 0;
	return vm->use.steal.v < most ? vm->use.steal.v : most;
}

bool snapshot_vms_unknown(const struct snapshot *s)
{
	if (s->nvms)
		return false;
	for (size_t i = 0; i < s->nsources; i++)
		if (s->sources[i].state == SOURCE_OFF &&
		    (!strcmp(s->sources[i].name, "vms") ||
		     !strcmp(s->sources[i].name, "file descriptors")))
			return true;
	return false;
}

bool snapshot_any_guessed(const struct snapshot *s)
{
	for (size_t i = 0; i < s->nvms; i++)
		if (s->vms[i].quality & SNAP_QUALITY_GUESSED)
			return true;
	return false;
}

unsigned snap_callers(const struct snap_symbol *x, bool total, struct snap_caller out[SNAP_CALLERS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < SNAP_CALLERS; i++) {
		const struct snap_caller *c = &x->caller[i];
		uint64_t calls = total ? c->samples_total : c->samples;
		unsigned at = n;

		if (!calls || !c->name || !*c->name)
			continue;
		for (; at && calls > (total ? out[at - 1].samples_total : out[at - 1].samples);
		     at--)
			out[at] = out[at - 1];
		out[at] = *c;
		n++;
	}
	return n;
}

static void add_caller(struct snap_symbol *into, const struct snap_caller *from)
{
	for (unsigned i = 0; i < SNAP_CALLERS && *from->name; i++) {
		struct snap_caller *x = &into->caller[i];

		if (!*x->name)
			*x = (struct snap_caller){.name = from->name,
						  .samples_total = from->samples_total};
		else if (strcmp(x->name, from->name) != 0)
			continue;
		x->samples += from->samples;
		return;
	}
}

void snap_callers_add(struct snap_symbol *into, const struct snap_symbol *from)
{
	for (unsigned i = 0; i < SNAP_CALLERS; i++)
		add_caller(into, &from->caller[i]);
}
