// SPDX-License-Identifier: GPL-2.0-only
/* The matrix of roles and looks (theme.h). */
#include "theme.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { BOLD = 1, FAINT = 2, REVERSE = 4, UNDER = 8 };

#define NONE COLOR_NONE

/* fg and bg as rgb for a dark and a light ground; as one of 8 colours; attributes mono and all. */
struct look {
	const char *name;
	char letter;
	int32_t dark_fg, dark_bg, light_fg, light_bg;
	int8_t fg8, bg8;
	uint8_t attr, mono;
};

/*
 * Calm by default: most cells have the terminal's own colours, a background is only given to
 * bars, and the strong hues are kept for what needs the eye. Meaning never hangs on colour
 * alone: marks (!, q, ~) and words say the same in mono.
 */
/* clang-format off */
static const struct look looks[ROLE_NR] = {
	/*                 name       letter  dark fg   dark bg   light fg  light bg  8fg   8bg   attr  mono */
	[ROLE_TEXT]      = {"text",      '.', NONE,     NONE,     NONE,     NONE,     NONE, NONE, 0,    0},
	[ROLE_DIM]       = {"dim",       'd', 0x808a99, NONE,     0x6b7280, NONE,     NONE, NONE, 0,    0},
	[ROLE_STRONG]    = {"strong",    's', NONE,     NONE,     NONE,     NONE,     NONE, NONE, BOLD, BOLD},
	[ROLE_BRAND]     = {"brand",     'b', 0x7fc8f8, NONE,     0x005f9e, NONE,     6,    NONE, BOLD, BOLD},
	[ROLE_HEAD]      = {"head",      'h', 0xd7dde8, 0x2b3445, 0x1f2937, 0xd9e1ec, 7,    4,    0,    REVERSE},
	[ROLE_HEAD_SORT] = {"head-sort", 'o', 0xffffff, 0x3d5a80, 0xffffff, 0x3d6a9e, 7,    4,    BOLD, REVERSE | BOLD},
	[ROLE_FRAME]     = {"frame",     'f', 0x66738a, NONE,     0x8a94a6, NONE,     NONE, NONE, 0,    0},
	[ROLE_TAB]       = {"tab",       't', 0x9aa5b8, NONE,     0x5b6576, NONE,     NONE, NONE, 0,    0},
	[ROLE_TAB_ON]    = {"tab-on",    'T', 0xffffff, 0x3d5a80, 0xffffff, 0x3d6a9e, 7,    4,    BOLD, REVERSE},
	[ROLE_KEY]       = {"key",       'k', 0x7fc8f8, 0x232a38, 0x004f87, 0xe6ebf2, 6,    NONE, BOLD, BOLD},
	[ROLE_BAR]       = {"bar",       'a', 0xaab4c5, 0x232a38, 0x3b4454, 0xe6ebf2, NONE, NONE, 0,    0},
	[ROLE_GOOD]      = {"good",      'g', 0x8ccf7e, NONE,     0x1a7f37, NONE,     2,    NONE, 0,    0},
	[ROLE_NOTICE]    = {"notice",    'n', 0x8fb8de, NONE,     0x1d5fa8, NONE,     6,    NONE, 0,    0},
	[ROLE_WARN]      = {"warn",      'w', 0xd7a04a, NONE,     0x8a5a00, NONE,     3,    NONE, 0,    BOLD},
	[ROLE_ALARM]     = {"alarm",     'r', 0xff6b6b, NONE,     0xc21f1f, NONE,     1,    NONE, BOLD, BOLD | UNDER},
	[ROLE_MISSING]   = {"missing",   'm', 0xe5a45b, NONE,     0x9a4f00, NONE,     3,    NONE, 0,    BOLD},
	[ROLE_PAUSED]    = {"paused",    'p', 0x1b1f27, 0xe5c07b, 0xffffff, 0x8a5a00, 0,    3,    BOLD, REVERSE},
	[ROLE_INPUT]     = {"input",     'i', NONE,     NONE,     NONE,     NONE,     NONE, NONE, BOLD, BOLD},
	[ROLE_GUEST]     = {"guest",     'u', 0x6fbf73, NONE,     0x2e7d32, NONE,     2,    NONE, 0,    0},
	[ROLE_SYS]       = {"sys",       'y', 0xe59866, NONE,     0xb3541e, NONE,     1,    NONE, 0,    0},
	[ROLE_USR]       = {"usr",       'e', 0x6fa8dc, NONE,     0x1d5fa8, NONE,     4,    NONE, 0,    0},
	[ROLE_IRQ]       = {"irq",       'j', 0xb48ead, NONE,     0x7b3f8c, NONE,     5,    NONE, 0,    0},
	[ROLE_STEAL]     = {"steal",     'l', 0xff6b6b, NONE,     0xc21f1f, NONE,     1,    NONE, 0,    BOLD},
	[ROLE_QUOTA]     = {"quota",     'q', 0xd787d7, NONE,     0x8b2f97, NONE,     5,    NONE, 0,    BOLD},
	[ROLE_HEAT0]     = {"heat0",     '0', 0x3b4a5f, NONE,     0xb9c9dc, NONE,     4,    NONE, 0,    0},
	[ROLE_HEAT1]     = {"heat1",     '1', 0x3f6285, NONE,     0x93b4d6, NONE,     4,    NONE, 0,    0},
	[ROLE_HEAT2]     = {"heat2",     '2', 0x3f7f9f, NONE,     0x6a9cc9, NONE,     6,    NONE, 0,    0},
	[ROLE_HEAT3]     = {"heat3",     '3', 0x4f9f94, NONE,     0x3f83b5, NONE,     6,    NONE, 0,    0},
	[ROLE_HEAT4]     = {"heat4",     '4', 0x8fb86a, NONE,     0x6f7fb0, NONE,     2,    NONE, 0,    0},
	[ROLE_HEAT5]     = {"heat5",     '5', 0xd9b85c, NONE,     0x9a6aa0, NONE,     3,    NONE, 0,    0},
	[ROLE_HEAT6]     = {"heat6",     '6', 0xe8894f, NONE,     0xb94f77, NONE,     1,    NONE, 0,    BOLD},
	[ROLE_HEAT7]     = {"heat7",     '7', 0xf25f5c, NONE,     0xc21f1f, NONE,     1,    NONE, BOLD, BOLD},
};
/* clang-format on */

/* The selection bar, by ground; its text keeps the role's colour where that stays legible. */
#define SELECT_DARK 0x264f78
#define SELECT_LIGHT 0xbcd7f5
#define BLUR_DARK 0x2f3542
#define BLUR_LIGHT 0xdde3ea
#define MATCH_DARK 0x5c4b00
#define MATCH_LIGHT 0xffe08a

/* One colour component to the 6 steps of the 256-colour cube. */
static int cube_step(int v)
{
	static const int step[] = {0, 95, 135, 175, 215, 255};
	int best = 0;

	for (int i = 1; i < 6; i++)
		if (abs(step[i] - v) < abs(step[best] - v))
			best = i;
	return best;
}

static long distance(int32_t rgb, int r, int g, int b)
{
	long dr = (rgb >> 16 & 255) - r, dg = (rgb >> 8 & 255) - g, db = (rgb & 255) - b;

	return dr * dr * 3 + dg * dg * 6 + db * db;
}

/* The nearest of the 256 colours: the cube or the grey ramp. */
static int32_t to_256(int32_t rgb)
{
	static const int step[] = {0, 95, 135, 175, 215, 255};
	int r, g, b, grey, level;

	if (rgb == COLOR_NONE)
		return COLOR_NONE;
	r = cube_step(rgb >> 16 & 255);
	g = cube_step(rgb >> 8 & 255);
	b = cube_step(rgb & 255);
	grey = ((rgb >> 16 & 255) + (rgb >> 8 & 255) + (rgb & 255)) / 3;
	level = grey < 8 ? 0 : grey > 238 ? 23 : (grey - 3) / 10;
	grey = 8 + level * 10;
	if (distance(rgb, grey, grey, grey) < distance(rgb, step[r], step[g], step[b]))
		return 232 + level;
	return 16 + 36 * r + 6 * g + b;
}

/* One part of `to` in `parts` of the colour, the rest is `from`. */
static int32_t mixed(int32_t from, int32_t to, int parts)
{
	int32_t out = 0;

	for (int shift = 0; shift <= 16; shift += 8) {
		int32_t a = from >> shift & 255, b = to >> shift & 255;

		out |= (a + (b - a) / parts) << shift;
	}
	return out;
}

static void add_attrs(struct style *s, unsigned attr)
{
	s->bold |= !!(attr & BOLD);
	s->dim |= !!(attr & FAINT);
	s->reverse |= !!(attr & REVERSE);
	s->underline |= !!(attr & UNDER);
}

static struct style style_mono(const struct look *l, unsigned attr)
{
	struct style s = {.fg = COLOR_NONE, .bg = COLOR_NONE};

	add_attrs(&s, l->mono);
	if (attr & CELL_SELECTED)
		s.reverse = true;
	if (attr & CELL_BLURRED) {
		s.reverse = false;
		s.underline = true;
	}
	if (attr & CELL_MATCH)
		s.underline = true;
	return s;
}

static struct style style_8(const struct look *l, unsigned attr)
{
	struct style s = {.fg = l->fg8, .bg = l->bg8};

	add_attrs(&s, l->attr);
	/* Reverse, not a colour: it is legible on whatever the ground is. */
	if (attr & CELL_SELECTED)
		s = (struct style){.fg = COLOR_NONE, .bg = COLOR_NONE, .reverse = true};
	if (attr & CELL_BLURRED) {
		s.reverse = false;
		s.underline = true;
	}
	if (attr & CELL_MATCH)
		s.underline = true;
	return s;
}

static struct style style_rgb(const struct look *l, enum theme_ground ground, unsigned attr)
{
	bool dark = ground == GROUND_DARK;
	struct style s = {
		.fg = dark ? l->dark_fg : l->light_fg,
		.bg = dark ? l->dark_bg : l->light_bg,
	};

	add_attrs(&s, l->attr);
	/* A role with a bar of its own keeps it: its text was chosen for that. */
	if (s.bg != COLOR_NONE)
		attr &= CELL_MATCH;
	if (attr & CELL_SELECTED) {
		s.bg = dark ? SELECT_DARK : SELECT_LIGHT;
		if (s.fg == COLOR_NONE || l->letter == 'd')
			s.fg = dark ? 0xffffff : 0x101418;
		else if (!isdigit((unsigned char)l->letter)) /* a heat map's shades are its scale */
			/* The hue stays, and is legible on the bar: the worst row is the first one.
			 */
			s.fg = mixed(s.fg, dark ? 0xffffff : 0x000000, dark ? 2 : 3);
	}
	if (attr & CELL_BLURRED)
		s.bg = dark ? BLUR_DARK : BLUR_LIGHT;
	if (attr & CELL_MATCH) {
		s.bg = dark ? MATCH_DARK : MATCH_LIGHT;
		s.underline = true;
	}
	/* A background of ours needs a foreground of ours: the ground was only guessed. */
	if (s.bg != COLOR_NONE && s.fg == COLOR_NONE)
		s.fg = dark ? 0xe6e6e6 : 0x101418;
	return s;
}

struct style theme_style(const struct theme *t, enum role role, unsigned attr)
{
	const struct look *l = &looks[role < ROLE_NR ? role : ROLE_TEXT];
	struct style s;

	if (t->depth == DEPTH_MONO)
		return style_mono(l, attr);
	if (t->depth == DEPTH_8)
		return style_8(l, attr);
	s = style_rgb(l, t->ground, attr);
	if (t->depth == DEPTH_256) {
		s.fg = to_256(s.fg);
		s.bg = to_256(s.bg);
	}
	return s;
}

enum role theme_level(double v, double warn, double alarm)
{
	if (alarm > 0 && v >= alarm)
		return ROLE_ALARM;
	if (warn > 0 && v >= warn)
		return ROLE_WARN;
	return ROLE_TEXT;
}

static enum theme_depth depth_of(int colors, bool truecolor)
{
	if (truecolor || colors > 256)
		return DEPTH_TRUE;
	if (colors >= 256)
		return DEPTH_256;
	return colors >= 8 ? DEPTH_8 : DEPTH_MONO;
}

bool theme_choose(const char *want, int term_colors, struct theme *out)
{
	const char *no = getenv("NO_COLOR"), *ct = getenv("COLORTERM");
	bool truecolor = ct && (!strcasecmp(ct, "truecolor") || !strcasecmp(ct, "24bit"));
	static const struct {
		const char *word;
		enum theme_depth depth;
	} fixed[] = {
		{"never", DEPTH_MONO}, {"mono", DEPTH_MONO},	  {"8", DEPTH_8},
		{"256", DEPTH_256},    {"truecolor", DEPTH_TRUE},
	};

	if (!want || !strcasecmp(want, "auto")) {
		out->depth = no && *no ? DEPTH_MONO : depth_of(term_colors, truecolor);
		return true;
	}
	if (!strcasecmp(want, "always")) {
		out->depth = depth_of(term_colors < 8 ? 8 : term_colors, truecolor);
		return true;
	}
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		if (!strcasecmp(want, fixed[i].word)) {
			out->depth = fixed[i].depth;
			return true;
		}
	}
	return false;
}

/* COLORFGBG is "fg;bg" or "fg;default;bg"; 7 and 9–15 are light grounds. */
static enum theme_ground ground_from_env(void)
{
	const char *v = getenv("COLORFGBG"), *bg = v ? strrchr(v, ';') : NULL;
	char *end;
	long n;

	if (!bg)
		return GROUND_DARK;
	n = strtol(bg + 1, &end, 10);
	if (end == bg + 1)
		return GROUND_DARK;
	return n == 7 || (n >= 9 && n <= 15) ? GROUND_LIGHT : GROUND_DARK;
}

bool theme_ground(const char *word, struct theme *out)
{
	if (!word || !strcasecmp(word, "auto"))
		out->ground = ground_from_env();
	else if (!strcasecmp(word, "dark"))
		out->ground = GROUND_DARK;
	else if (!strcasecmp(word, "light"))
		out->ground = GROUND_LIGHT;
	else
		return false;
	return true;
}

char theme_role_letter(enum role role, unsigned attr)
{
	char c = looks[role < ROLE_NR ? role : ROLE_TEXT].letter;

	if (attr & CELL_MATCH)
		return '?';
	if (attr & (CELL_SELECTED | CELL_BLURRED))
		return c == '.' ? '#' : (char)toupper((unsigned char)c);
	return c;
}

const char *theme_role_name(enum role role)
{
	return role < ROLE_NR ? looks[role].name : "";
}
