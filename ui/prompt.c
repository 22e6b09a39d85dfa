// SPDX-License-Identifier: GPL-2.0-only
/* Line editing (prompt.h). */
#include "prompt.h"

#include <stdio.h>
#include <string.h>

#include "keymap.h"
#include "text.h"

void prompt_start(struct prompt *p, const char *label, const char *text)
{
	memset(p, 0, sizeof(*p));
	snprintf(p->label, sizeof(p->label), "%s", label);
	snprintf(p->text, sizeof(p->text), "%s", text);
	p->len = p->cur = strlen(p->text);
}

void prompt_propose(struct prompt *p, const char *label, const char *text)
{
	prompt_start(p, label, text);
	p->proposed = true;
}

static size_t encode(uint32_t cp, char out[4])
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

static bool insert(struct prompt *p, uint32_t cp, bool replaces)
{
	char bytes[4];
	size_t n;

	if (cp < 0x20 || (cp >= 0x7f && cp <= 0x9f) || cp > 0x10ffff ||
	    (cp >= 0xd800 && cp <= 0xdfff))
		return false;
	if (replaces)
		p->text[p->len = p->cur = 0] = '\0';
	n = encode(cp, bytes);
	if (p->len + n + 1 > sizeof(p->text))
		return false;
	memmove(p->text + p->cur + n, p->text + p->cur, p->len - p->cur + 1);
	memcpy(p->text + p->cur, bytes, n);
	p->cur += n;
	p->len += n;
	return true;
}

static size_t before(const struct prompt *p, size_t at)
{
	if (at == 0)
		return 0;
	do
		at--;
	while (at > 0 && ((unsigned char)p->text[at] & 0xc0) == 0x80);
	return at;
}

static size_t after(const struct prompt *p, size_t at)
{
	uint32_t cp;

	return at < p->len ? at + utf8_next(p->text + at, &cp) : at;
}

static enum prompt_result delete_range(struct prompt *p, size_t from, size_t to)
{
	if (from >= to)
		return PROMPT_GOES_ON;
	memmove(p->text + from, p->text + to, p->len - to + 1);
	p->len -= to - from;
	p->cur = from;
	return PROMPT_CHANGED;
}

static size_t word_start(const struct prompt *p)
{
	size_t at = p->cur;

	while (at > 0 && p->text[at - 1] == ' ')
		at--;
	while (at > 0 && p->text[at - 1] != ' ')
		at--;
	return at;
}

enum prompt_result prompt_key(struct prompt *p, uint32_t key)
{
	bool replaces = p->proposed;

	p->proposed = false;
	switch (key) {
	case UK_ENTER:
	case '\n':
		return PROMPT_DONE;
	case UK_ESC:
	case UK_CTRL('C'):
	case UK_CTRL('G'):
		return PROMPT_CANCELLED;
	case UK_LEFT:
	case UK_CTRL('B'):
		p->cur = before(p, p->cur);
		return PROMPT_GOES_ON;
	case UK_RIGHT:
	case UK_CTRL('F'):
		p->cur = after(p, p->cur);
		return PROMPT_GOES_ON;
	case UK_HOME:
	case UK_CTRL('A'):
		p->cur = 0;
		return PROMPT_GOES_ON;
	case UK_END:
	case UK_CTRL('E'):
		p->cur = p->len;
		return PROMPT_GOES_ON;
	case UK_BACKSPACE:
	case UK_CTRL('H'):
	case 0x7f:
		return delete_range(p, before(p, p->cur), p->cur);
	case UK_DELETE:
	case UK_CTRL('D'):
		return delete_range(p, p->cur, after(p, p->cur));
	case UK_CTRL('U'):
		return delete_range(p, 0, p->cur);
	case UK_CTRL('K'):
		return delete_range(p, p->cur, p->len);
	case UK_CTRL('W'):
		return delete_range(p, word_start(p), p->cur);
	default:
		return insert(p, key, replaces) ? PROMPT_CHANGED : PROMPT_GOES_ON;
	}
}

void prompt_draw(const struct prompt *p, const struct area *a)
{
	int x = area_textf(a, 0, 1, ROLE_KEY, "%s: ", p->label);
	int room = a->w - x - 1, skip = 0, at;
	char head[PROMPT_SIZE];
	struct area in;

	snprintf(head, sizeof(head), "%.*s", (int)p->cur, p->text);
	at = (int)utf8_width(head);
	/* A long line is scrolled so that the cursor stays on screen. */
	if (room > 0 && at > room)
		skip = at - room;
	in = area_sub(a, 0, x, 1, a->w - x);
	area_fill(&in, 0, 0, in.w, ROLE_INPUT, ' ');
	area_text(&in, 0, -skip, ROLE_INPUT, p->text);
	/* As elsewhere: what is marked goes when something is typed. */
	if (p->proposed)
		area_attr(&in, 0, 0, at - skip, CELL_SELECTED);
	area_cursor(&in, 0, at - skip);
}
