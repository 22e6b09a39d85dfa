// SPDX-License-Identifier: GPL-2.0-only
/*
 * Text that goes to people and to formats: escaping, cutting, figures.
 *
 * VM names, thread names and symbols are chosen by guests and VMMs. Nothing of them
 * reaches a terminal or a format before it went through here.
 */
#include "text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Output that counts what it would need and is only ever cut between characters. */
struct out {
	char *buf;
	size_t size, len, need;
	bool full;
};

static void put(struct out *o, const char *s, size_t n)
{
	o->need += n;
	if (o->full || o->len + n + 1 > o->size) {
		o->full = true;
		return;
	}
	memcpy(o->buf + o->len, s, n);
	o->len += n;
}

__attribute__((format(printf, 2, 3))) static void putf(struct out *o, const char *fmt, ...)
{
	char tmp[16];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(tmp, sizeof(tmp), fmt, ap);
	va_end(ap);
	put(o, tmp, strlen(tmp));
}

static size_t finish(struct out *o)
{
	if (o->size)
		o->buf[o->len] = '\0';
	return o->need;
}

/*
 * Characters that a terminal acts on or that make a text look like another: controls, bidi
 * marks and overrides, zero-width spaces, line separators, interlinear and tag characters.
 */
static bool is_dangerous(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} bad[] = {
		{0x00, 0x1f},	  {0x7f, 0x9f},	      {0x61c, 0x61c},	{0x180e, 0x180e},
		{0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f}, {0xfeff, 0xfeff},
		{0xfff9, 0xfffb}, {0xe0000, 0xe007f},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (cp >= bad[i].first && cp <= bad[i].last)
			return true;
	return false;
}

/* Writes one dangerous character in visible form. */
static void put_visible(struct out *o, uint32_t cp)
{
	static const struct {
		uint32_t cp;
		const char *text;
	} named[] = {{'\n', "\\n"}, {'\t', "\\t"}, {'\r', "\\r"}, {0x1b, "\\e"}};

	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		if (named[i].cp == cp) {
			put(o, named[i].text, 2);
			return;
		}
	}
	if (cp < 0x80)
		putf(o, "\\x%02x", cp);
	else if (cp <= 0xffff)
		putf(o, "\\u%04x", cp);
	else
		putf(o, "\\U%08x", cp);
}

static void put_escaped(struct out *o, const char *in, bool word)
{
	uint32_t cp;

	while (*in) {
		size_t n = utf8_next(in, &cp);

		if (cp == 0xfffd && n == 1)
			putf(o, "\\x%02x", (unsigned char)*in);
		else if (cp == '\\')
			put(o, "\\\\", 2);
		else if (word && cp == ' ')
			put(o, "\\x20", 4);
		else if (word && (cp == 0xa0 || cp == 0x3000))
			putf(o, "\\u%04x", cp);
		else if (is_dangerous(cp))
			put_visible(o, cp);
		else
			put(o, in, n);
		in += n;
	}
}

size_t text_escape(char *out, size_t size, const char *in)
{
	struct out o = {.buf = out, .size = size};

	put_escaped(&o, in, false);
	return finish(&o);
}

size_t text_escape_word(char *out, size_t size, const char *in)
{
	struct out o = {.buf = out, .size = size};

	if (!*in)
		put(&o, "-", 1);
	put_escaped(&o, in, true);
	return finish(&o);
}

/* Escapes one input character at a time, so that its quotes can be doubled. */
static void put_csv(struct out *o, const char *in)
{
	char one[8];
	uint32_t cp;

	while (*in) {
		size_t n = utf8_next(in, &cp);

		memcpy(one, in, n);
		one[n] = '\0';
		if (cp == '"')
			put(o, "\"\"", 2);
		else
			put_escaped(o, one, false);
		in += n;
	}
}

size_t text_escape_csv(char *out, size_t size, const char *in)
{
	struct out o = {.buf = out, .size = size};
	bool quote = strpbrk(in, ",\"") || in[0] == ' ' || (in[0] && in[strlen(in) - 1] == ' ');

	if (!quote) {
		put_csv(&o, in);
		return finish(&o);
	}
	/* One byte is kept back: a cut cell still has its closing quote. */
	if (size >= 3)
		o.size--;
	put(&o, "\"", 1);
	put_csv(&o, in);
	o.size = size;
	o.full = size < 3;
	put(&o, "\"", 1);
	return finish(&o);
}

/* A backslash stays one, as other metrics of the same group or file have it. */
size_t text_escape_label(char *out, size_t size, const char *in)
{
	struct out o = {.buf = out, .size = size};
	char one[8], safe[16], quoted[32];
	uint32_t cp;

	while (*in) {
		size_t n = utf8_next(in, &cp), len = 0;

		memcpy(one, in, n);
		one[n] = '\0';
		text_escape(safe, sizeof(safe), one);
		for (const char *p = cp == '\\' ? one : safe; *p; p++) {
			if (*p == '\\' || *p == '"')
				quoted[len++] = '\\';
			quoted[len++] = *p;
		}
		put(&o, quoted, len);
		in += n;
	}
	return finish(&o);
}

/* What no shell takes for anything but itself; nor does kvmtop take it for an option. */
static bool is_plain(const char *s)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-+:@/,%=";

	return *s && *s != '-' && *s != '=' && !s[strspn(s, plain)];
}

static bool has_invisible(const char *s)
{
	uint32_t cp;
	size_t n;

	for (; *s; s += n) {
		n = utf8_next(s, &cp);
		if ((cp == 0xfffd && n == 1) || is_dangerous(cp))
			return true;
	}
	return false;
}

/* No backslash ends up before a quote: escaping it all once more must not set one free. */
static void put_shell(struct out *o, const char *in, bool invisible)
{
	char one[8];
	uint32_t cp;

	while (*in) {
		size_t n = utf8_next(in, &cp);

		memcpy(one, in, n);
		one[n] = '\0';
		if (cp == '\'' && invisible)
			put(o, "\\x27", 4);
		else if (cp == '\'')
			put(o, "'\"'\"'", 5);
		else if (invisible)
			put_escaped(o, one, false);
		else
			put(o, one, n);
		in += n;
	}
}

size_t text_shell_word(char *out, size_t size, const char *in)
{
	struct out o = {.buf = out, .size = size};
	bool invisible = has_invisible(in);

	if (is_plain(in)) {
		put(&o, in, strlen(in));
		return finish(&o);
	}
	/* One byte is kept back: a cut word still has its closing quote. */
	if (size >= 4)
		o.size--;
	put(&o, invisible ? "$'" : "'", invisible ? 2 : 1);
	put_shell(&o, in, invisible);
	o.size = size;
	o.full = size < 4;
	put(&o, "'", 1);
	return finish(&o);
}

static bool is_path_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

size_t text_path_part(char *out, size_t size, const char *in)
{
	struct out o = {.buf = out, .size = size};

	for (size_t i = 0; in[i]; i++)
		if (is_path_plain(in[i]) || (in[i] == '.' && i))
			put(&o, &in[i], 1);
		else
			putf(&o, "%%%02X", (unsigned char)in[i]);
	return finish(&o);
}

size_t text_utf8_clean(char *out, size_t size, const char *in)
{
	struct out o = {.buf = out, .size = size};
	uint32_t cp;

	while (*in) {
		size_t n = utf8_next(in, &cp);

		if (cp == 0xfffd && n == 1)
			putf(&o, "\\x%02x", (unsigned char)*in);
		else
			put(&o, in, n);
		in += n;
	}
	return finish(&o);
}

/* Bytes of the longest beginning of s that takes at most `width` columns. */
static size_t head_bytes(const char *s, size_t width)
{
	size_t used = 0, at = 0;
	uint32_t cp;

	while (s[at]) {
		size_t n = utf8_next(s + at, &cp);
		size_t w = (size_t)utf8_width_cp(cp);

		if (used + w > width)
			break;
		used += w;
		at += n;
	}
	return at;
}

/* Where the end of s begins that takes at most `width` columns. */
static const char *tail_start(const char *s, size_t width)
{
	size_t all = utf8_width(s);
	uint32_t cp;

	while (*s && all > width) {
		s += utf8_next(s, &cp);
		all -= (size_t)utf8_width_cp(cp);
	}
	return s;
}

void text_cut_middle(char *out, size_t size, const char *in, size_t width)
{
	struct out o = {.buf = out, .size = size};
	size_t tail = width > 2 ? (width - 1) / 6 : 0;
	size_t head;
	const char *end;
	uint32_t cp;

	if (utf8_width(in) <= width) {
		end = in;
	} else if (width == 0) {
		end = "";
	} else {
		if (width > 2 && tail == 0)
			tail = 1;
		head = head_bytes(in, width - 1 - tail);
		for (size_t at = 0, n; at < head; at += n) {
			n = utf8_next(in + at, &cp);
			put(&o, in + at, n);
		}
		put(&o, "~", 1);
		end = tail_start(in, tail);
	}
	for (size_t n; *end; end += n) {
		n = utf8_next(end, &cp);
		put(&o, end, n);
	}
	finish(&o);
}

/* What stands where a value is not known; NULL where it is. */
static const char *unknown_text(struct value v)
{
	if (v.state == VALUE_NA)
		return "n/a";
	if (!value_has(v) || !isfinite(v.v))
		return "-";
	return NULL;
}

struct scale {
	double unit; /* the figure is divided by it */
	const char *suffix;
};

/*
 * Three significant digits with a suffix, fewer where the width is short. Returns false
 * where not even the whole number fits.
 */
static bool fit(char *out, size_t size, const char *sign, double v, const struct scale *s,
		int width)
{
	double x = v / s->unit;
	int digits = x < 9.995 ? 2 : x < 99.95 ? 1 : 0;

	if (s->unit == 1 && !*s->suffix)
		digits = x < 10 && x != floor(x) ? 1 : 0;
	for (; digits >= 0; digits--) {
		int n = snprintf(out, size, "%s%.*f%s", sign, digits, x, s->suffix);

		if (n <= width)
			return true;
	}
	return false;
}

static void fmt_scaled(char *out, size_t size, struct value v, int width, const struct scale *scale,
		       size_t n, double full)
{
	const char *unknown = unknown_text(v);
	const char *sign;
	double x = fabs(v.v);
	size_t i = 0;

	if (unknown) {
		snprintf(out, size, "%.*s", width < 0 ? 0 : width, unknown);
		return;
	}
	sign = v.state == VALUE_PARTIAL ? v.v < 0 ? "~-" : "~" : v.v < 0 ? "-" : "";
	/* 0.9995: what would round up to 1000 goes to the next unit. */
	while (i + 1 < n && x >= (i ? scale[i + 1].unit * 0.9995 : full))
		i++;
	/* A unit that would leave only zeroes says nothing. */
	for (size_t first = i; i < n && (i == first || x >= scale[i].unit * 0.995); i++)
		if (fit(out, size, sign, x, &scale[i], width))
			return;
	snprintf(out, size, "%.*s", width < 0 ? 0 : width, "#");
}

void fmt_count(char *out, size_t size, struct value v, int width)
{
	static const struct scale scale[] = {
		{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}, {1e18, "E"},
	};

	fmt_scaled(out, size, v, width, scale, sizeof(scale) / sizeof(scale[0]), 9999.5);
}

void fmt_ns(char *out, size_t size, struct value v, int width)
{
	static const struct scale scale[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
	struct value whole = v;

	/* Below a microsecond the digits after the point would be noise. */
	if (value_has(v) && isfinite(v.v) && fabs(v.v) < 999.5) {
		const char *sign = v.state == VALUE_PARTIAL ? "~" : "";
		int n = snprintf(out, size, "%s%.0fns", sign, v.v);

		if (n <= width)
			return;
	}
	fmt_scaled(out, size, whole, width, scale, sizeof(scale) / sizeof(scale[0]), 999.5);
}

void fmt_pct(char *out, size_t size, struct value v, int width)
{
	const char *unknown = unknown_text(v);

	if (unknown) {
		snprintf(out, size, "%.*s", width < 0 ? 0 : width, unknown);
		return;
	}
	for (int digits = 1; digits >= 0; digits--) {
		int n = snprintf(out, size, "%s%.*f", v.state == VALUE_PARTIAL ? "~" : "", digits,
				 v.v);

		if (n <= width)
			return;
	}
	fmt_count(out, size, v, width);
}

bool text_parse_ns(const char *text, uint64_t least, uint64_t most, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	double v;

	if (*text < '0' || *text > '9' || strspn(text, "0123456789.") > 15)
		return false;
	v = strtod(text, &end);
	/* "0x1" and "1e3" are numbers too, for strtod(). */
	if (end != text + strspn(text, "0123456789."))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) != 0)
			continue;
		v *= units[i].ns;
		if (v < (double)least || v > (double)most)
			return false;
		*ns = (uint64_t)(v + 0.5);
		return true;
	}
	return false;
}
