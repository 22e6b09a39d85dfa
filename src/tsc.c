// SPDX-License-Identifier: GPL-2.0-only
/* A guest's TSC and the host's (tsc.h). */
#include "grow.h"
#include "hex.h"
#include "tsc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SAME_WRITE 1000000 /* cycles: no guest writes the same change twice in so short a time */

typedef unsigned __int128 u128;

static bool is_scaled(const struct tsc_scale *s)
{
	return s && s->ratio && s->frac_bits <= TSC_FRAC_MAX;
}

uint64_t tsc_to_host(uint64_t guest, const struct tsc_scale *scale, uint64_t offset)
{
	uint64_t scaled = guest - offset;
	u128 wide;

	if (!is_scaled(scale))
		return scaled;
	wide = (u128)scaled << scale->frac_bits;
	return (uint64_t)(wide / scale->ratio + (wide % scale->ratio != 0));
}

static int parse_u64(const char *text, size_t len, int base, uint64_t *out)
{
	uint64_t v = 0;

	if (!len)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		int d = hex_digit(text[i]);

		if (d < 0 || d >= base)
			return -EINVAL;
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			return -ERANGE;
	}
	*out = v;
	return 0;
}

int tsc_parse_offset(const char *text, size_t len, uint64_t *out)
{
	bool minus = len && *text == '-';
	uint64_t v;
	int rc;

	if (minus || (len && *text == '+')) {
		text++;
		len--;
	}
	if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		rc = parse_u64(text + 2, len - 2, 16, &v);
	else
		rc = parse_u64(text, len, 10, &v);
	if (rc)
		return rc;
	/* -2^63 is the least that a signed offset can be. */
	if (minus && v > (uint64_t)1 << 63)
		return -ERANGE;
	*out = minus ? 0 - v : v;
	return 0;
}

/* "key=NUMBER" at *text, with blanks before it; moves behind it. */
static bool take(const char **text, const char *end, const char *key, uint64_t *out)
{
	const char *p = *text;
	size_t n = strlen(key), digits = 0;

	while (p < end && *p == ' ')
		p++;
	if ((size_t)(end - p) < n || memcmp(p, key, n) != 0)
		return false;
	p += n;
	while (p + digits < end && p[digits] >= '0' && p[digits] <= '9')
		digits++;
	if (parse_u64(p, digits, 10, out) < 0)
		return false;
	*text = p + digits;
	return true;
}

bool tsc_epoch_parse(const char *text, size_t len, struct tsc_epoch *e)
{
	const char *end = text + len;
	uint64_t vcpu;

	if (!take(&text, end, "vcpu=", &vcpu) || vcpu > UINT32_MAX)
		return false;
	e->vcpu = (unsigned)vcpu;
	return (take(&text, end, "prev=", &e->prev) || take(&text, end, "previous=", &e->prev)) &&
	       take(&text, end, "next=", &e->next);
}

static bool same_writer(const struct tsc_epoch *a, const struct tsc_epoch *b)
{
	return (a->tgid && a->tgid == b->tgid) || (a->tid && a->tid == b->tid);
}

/* How well e continues the chain; 0: not at all. */
static int continues(const struct tsc_chain *c, const struct tsc_epoch *e)
{
	const struct tsc_epoch *last = &c->epoch[c->n - 1];
	bool fits = last->next == e->prev, same = same_writer(last, e);

	if (c->vcpu != e->vcpu)
		return 0;
	if (fits)
		return same ? 3 : 2;
	/* Of a new vCPU the offset is 0: that one begins a chain, whoever made it. */
	return same && e->prev ? 1 : 0;
}

static struct tsc_chain *chain_of(struct tsc_epochs *all, const struct tsc_epoch *e)
{
	struct tsc_chain *best = NULL;
	int how = 0;

	/* From the youngest on: a VM that ended leaves its chain behind. */
	for (size_t i = all->n; i-- > 0;) {
		int now = continues(&all->chain[i], e);

		if (now > how) {
			how = now;
			best = &all->chain[i];
		}
	}
	if (best)
		return best;
	if (!grow(&all->chain, all->n, &all->cap, sizeof(*all->chain)))
		return NULL;
	best = &all->chain[all->n++];
	*best = (struct tsc_chain){.vcpu = e->vcpu};
	return best;
}

/* Two buffers that recorded the same write differ by what lies between their clocks' readings. */
static bool is_known(const struct tsc_epochs *all, const struct tsc_epoch *e)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct tsc_chain *c = &all->chain[i];
		const struct tsc_epoch *last = &c->epoch[c->n - 1];

		if (c->vcpu == e->vcpu && same_writer(last, e) && last->prev == e->prev &&
		    last->next == e->next && e->at - last->at < SAME_WRITE)
			return true;
	}
	return false;
}

int tsc_epochs_add(struct tsc_epochs *all, const struct tsc_epoch *e)
{
	struct tsc_chain *c;

	if (is_known(all, e))
		return 0;
	c = chain_of(all, e);
	if (!c)
		return -ENOMEM;
	if (!grow(&c->epoch, c->n, &c->cap, sizeof(*c->epoch))) {
		/* A chain is never without an epoch. */
		if (!c->n)
			all->n--;
		return -ENOMEM;
	}
	c->epoch[c->n] = *e;
	c->epoch[c->n].gap = c->n && c->epoch[c->n - 1].next != e->prev;
	c->n++;
	return 0;
}

void tsc_epochs_free(struct tsc_epochs *all)
{
	for (size_t i = 0; i < all->n; i++)
		free(all->chain[i].epoch);
	free(all->chain);
	*all = (struct tsc_epochs){0};
}
