// SPDX-License-Identifier: GPL-2.0-only
/* Parsers of the host's own files; see hoststat.h. */
#include "hoststat.h"

#include <errno.h>
#include <string.h>

#include "decimal.h"

#define CPU_MAX 1000000 /* more is a damaged file */

struct cursor {
	const char *p, *end;
};

static bool take_number(struct cursor *c, uint64_t *out)
{
	while (c->p < c->end && *c->p == ' ')
		c->p++;
	return decimal_take(&c->p, c->end, out);
}

/* The next line that begins with "cpu"; the cursor is behind the word. */
static bool next_line(const char *buf, size_t len, size_t *at, struct cursor *c)
{
	while (*at < len) {
		const char *line = buf + *at;
		const char *nl = memchr(line, '\n', len - *at);

		c->p = line;
		c->end = nl ? nl : buf + len;
		*at = (size_t)(c->end - buf) + 1;
		if (c->end - line > 3 && !memcmp(line, "cpu", 3)) {
			c->p += 3;
			return true;
		}
	}
	return false;
}

static bool take_cpu(struct cursor *c, int *cpu)
{
	uint64_t n;

	if (c->p < c->end && *c->p == ' ') {
		*cpu = -1;
		return true;
	}
	if (!take_number(c, &n) || n > CPU_MAX)
		return false;
	*cpu = (int)n;
	return true;
}

bool hoststat_next_cpu(const char *buf, size_t len, size_t *at, int *cpu, struct cpu_ticks *t)
{
	struct cursor c;

	while (next_line(buf, len, at, &c)) {
		uint64_t *const f[] = {&t->user,   &t->nice,	  &t->system,  &t->idle,
				       &t->iowait, &t->irq,	  &t->softirq, &t->steal,
				       &t->guest,  &t->guest_nice};
		size_t n = 0;

		if (!take_cpu(&c, cpu))
			continue;
		memset(t, 0, sizeof(*t)); /* old kernels have fewer: those stay 0 */
		while (n < sizeof(f) / sizeof(f[0]) && take_number(&c, f[n]))
			n++;
		if (n >= 4)
			return true;
	}
	return false;
}

bool hoststat_next_wait(const char *buf, size_t len, size_t *at, int *cpu, uint64_t *wait_ns)
{
	struct cursor c;

	while (next_line(buf, len, at, &c)) {
		uint64_t v = 0;
		int n = 0;

		if (!take_cpu(&c, cpu) || *cpu < 0)
			continue;
		while (n < 8 && take_number(&c, &v))
			n++;
		if (n == 8) {
			*wait_ns = v;
			return true;
		}
	}
	return false;
}

int hoststat_cpulist(const char *buf, size_t len, int max, void (*each)(void *ctx, int cpu),
		     void *ctx)
{
	struct cursor c = {buf, buf + len};

	while (c.p < c.end && *c.p != '\n' && *c.p) {
		uint64_t from, to;

		if (!take_number(&c, &from))
			return -EBADMSG;
		to = from;
		if (c.p < c.end && *c.p == '-') {
			c.p++;
			if (!take_number(&c, &to))
				return -EBADMSG;
		}
		if (to < from)
			return -EBADMSG;
		for (uint64_t i = from; i <= to && i < (uint64_t)max; i++)
			each(ctx, (int)i);
		if (c.p < c.end && *c.p == ',')
			c.p++;
		else
			break;
	}
	return c.p >= c.end || *c.p == '\n' || !*c.p ? 0 : -EBADMSG;
}

int hoststat_only_cpu(const char *list)
{
	struct cursor c = {list, list + strlen(list)};
	uint64_t cpu;

	return take_number(&c, &cpu) && c.p == c.end && cpu <= CPU_MAX ? (int)cpu : -1;
}

bool hoststat_meminfo(const char *buf, size_t len, const char *key, uint64_t *kb)
{
	struct cursor c;

	c.p = decimal_line(buf, len, key, ':', &c.end);
	while (c.p && c.p < c.end && *c.p == '\t')
		c.p++;
	return c.p && take_number(&c, kb);
}
