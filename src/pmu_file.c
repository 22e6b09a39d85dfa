// SPDX-License-Identifier: GPL-2.0-only
/* A vCPU's file pmu in debugfs (pmu.h): a line for the PMU, a line a counter, all key=value. */
#include "pmu.h"

#include <errno.h>
#include <string.h>

struct text {
	const char *at, *end;
};

struct word {
	const char *key, *value;
	size_t key_len, value_len;
};

/* A key that must stand in a line once. */
struct key {
	const char *name;
	uint64_t *out;
	uint64_t most;
};

static bool next_line(struct text *t, struct text *line)
{
	const char *nl;

	if (t->at == t->end)
		return false;
	nl = memchr(t->at, '\n', (size_t)(t->end - t->at));
	if (!nl) /* the kernel ends each line: this one was cut */
		return false;
	*line = (struct text){t->at, nl};
	t->at = nl + 1;
	return true;
}

/* 1, 0 at the line's end, -EINVAL. Words are apart by one blank. */
static int next_word(struct text *line, struct word *w)
{
	const char *end, *eq;

	if (line->at == line->end)
		return 0;
	end = memchr(line->at, ' ', (size_t)(line->end - line->at));
	end = end ? end : line->end;
	eq = memchr(line->at, '=', (size_t)(end - line->at));
	if (!eq || eq == line->at)
		return -EINVAL;
	*w = (struct word){line->at, eq + 1, (size_t)(eq - line->at), (size_t)(end - eq - 1)};
	line->at = end < line->end ? end + 1 : end;
	return end < line->end && line->at == line->end ? -EINVAL : 1;
}

static bool is(const char *text, size_t len, const char *name)
{
	return strlen(name) == len && memcmp(text, name, len) == 0;
}

static int digit_of(char c, unsigned base)
{
	int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;

	return d < (int)base ? d : -1;
}

/* Decimal, or 0x and small hexadecimal digits, as the kernel prints them. */
static int number(const char *p, size_t len, uint64_t *out)
{
	unsigned base = len > 2 && p[0] == '0' && p[1] == 'x' ? 16 : 10;
	size_t i = base == 16 ? 2 : 0;
	uint64_t v = 0;

	if (i == len)
		return -EINVAL;
	for (; i < len; i++) {
		int d = digit_of(p[i], base);

		if (d < 0 || v > (UINT64_MAX - (unsigned)d) / base)
			return -EINVAL;
		v = v * base + (unsigned)d;
	}
	*out = v;
	return 0;
}

/* Sets the one of keys that the word is; *seen has a bit for each. */
static int take(const struct word *w, const struct key *key, size_t n, unsigned *seen)
{
	for (size_t i = 0; i < n; i++) {
		if (!is(w->key, w->key_len, key[i].name))
			continue;
		if (*seen & 1u << i || number(w->value, w->value_len, key[i].out) < 0 ||
		    *key[i].out > key[i].most)
			return -EINVAL;
		*seen |= 1u << i;
		return 0;
	}
	return 0;
}

static int take_format(struct text *line)
{
	uint64_t format;
	struct word w;

	if (next_word(line, &w) != 1 || !is(w.key, w.key_len, "format") ||
	    number(w.value, w.value_len, &format) < 0)
		return -EINVAL;
	return format == 1 ? 0 : -EPROTONOSUPPORT;
}

static int parse_head(struct text line, struct pmu_state *out)
{
	uint64_t enabled = 0, version = 0, gp = 0, fixed = 0, gp_width = 0, fixed_width = 0,
		 soft = 0;
	const struct key key[] = {
		{"enabled", &enabled, 1},
		{"version", &version, 255},
		{"gp", &gp, UINT32_MAX},
		{"fixed", &fixed, UINT32_MAX},
		{"gp_width", &gp_width, 64},
		{"fixed_width", &fixed_width, 64},
		{"global_ctrl", &out->global_ctrl, UINT64_MAX},
		{"global_status", &out->global_status, UINT64_MAX},
		{"fixed_ctr_ctrl", &out->fixed_ctr_ctrl, UINT64_MAX},
		{"soft", &soft, 1}, /* was added later */
	};
	const size_t n = sizeof(key) / sizeof(key[0]), needed = n - 1;
	int rc = take_format(&line), more = 0;
	unsigned seen = 0;
	struct word w;

	while (!rc && (more = next_word(&line, &w)) == 1)
		rc = take(&w, key, n, &seen);
	if (rc || more < 0 || (seen | 1u << needed) != (1u << n) - 1)
		return rc ? rc : -EINVAL;
	if (gp + fixed > PMU_COUNTERS)
		return -E2BIG;
	out->enabled = enabled;
	out->soft = soft;
	out->version = (unsigned)version;
	out->gp = (unsigned)gp;
	out->fixed = (unsigned)fixed;
	out->gp_width = (unsigned)gp_width;
	out->fixed_width = (unsigned)fixed_width;
	out->has_global_ctrl = version > 1; /* the first version had none, nor have AMD's before */
	out->has_fixed_ctrl = true;
	return 0;
}

/* "gp0", "fixed2": which one it is, in the order of the first line. */
static int take_counter(const struct word *w, size_t nth, const struct pmu_state *s,
			struct pmu_counter *c)
{
	const char *name = nth < s->gp ? "gp" : "fixed";
	size_t len = strlen(name);
	uint64_t nr;

	c->fixed = nth >= s->gp;
	if (w->value_len <= len || memcmp(w->value, name, len) != 0 ||
	    number(w->value + len, w->value_len - len, &nr) < 0 ||
	    nr != (c->fixed ? nth - s->gp : nth))
		return -EINVAL;
	c->nr = (uint8_t)nr;
	return 0;
}

static uint8_t event_of(const struct word *w)
{
	for (int e = PMU_EVENT_NONE; e < PMU_EVENT_OTHER; e++)
		if (is(w->value, w->value_len, pmu_event_state_name((enum pmu_event)e)))
			return (uint8_t)e;
	return PMU_EVENT_OTHER;
}

static int parse_counter(struct text line, size_t nth, const struct pmu_state *s,
			 struct pmu_counter *c)
{
	uint64_t enabled = 0;
	const struct key key[] = {
		{"select", &c->select, UINT64_MAX},
		{"value", &c->value, UINT64_MAX},
		{"enabled", &enabled, 1},
		{"overflows", &c->overflows, UINT64_MAX},
		{"time_enabled", &c->time_enabled, UINT64_MAX},
		{"time_running", &c->time_running, UINT64_MAX},
	};
	const size_t n = sizeof(key) / sizeof(key[0]);
	unsigned seen = 0;
	struct word w;
	int more, rc;

	if (next_word(&line, &w) != 1 || !is(w.key, w.key_len, "counter"))
		return -EINVAL;
	rc = take_counter(&w, nth, s, c);
	while (!rc && (more = next_word(&line, &w)) != 0) {
		if (more < 0)
			return more;
		if (is(w.key, w.key_len, "event") && w.value_len)
			rc = c->event ? -EINVAL : ((void)(c->event = event_of(&w)), 0);
		else
			rc = take(&w, key, n, &seen);
	}
	if (rc || seen != (1u << n) - 1 || !c->event)
		return -EINVAL;
	c->has_select = c->has_value = true;
	c->enabled = enabled;
	return 0;
}

int pmu_parse(const char *text, size_t len, struct pmu_state *out)
{
	struct text t = {text, text + len}, line;
	int rc;

	*out = (struct pmu_state){0};
	if (!next_line(&t, &line))
		return -EINVAL;
	rc = parse_head(line, out);
	for (; !rc && out->n < out->gp + out->fixed; out->n++)
		rc = next_line(&t, &line) ? parse_counter(line, out->n, out, &out->counter[out->n])
					  : -EINVAL;
	if (!rc && t.at != t.end)
		rc = -EINVAL;
	return rc;
}
