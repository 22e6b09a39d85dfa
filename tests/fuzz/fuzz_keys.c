// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any keys, snapshots and window sizes: the screen is drawn without a fault, and nothing in it
 * is a control character. Two bytes an operation.
 */
#include <stdint.h>
#include <stdlib.h>

#include "keymap.h"
#include "surface.h"
#include "ui.h"
/* The helper is part of each test program that needs it. */
#include "../unit/made_snapshot.c" /* NOLINT(bugprone-suspicious-include) */

static void check(const struct surface *s)
{
	for (int i = 0; i < s->rows * s->cols; i++) {
		const struct surf_cell *c = &s->cell[i];

		if (c->width > 2 || (c->width && c->cp < 0x20) || (c->cp >= 0x7f && c->cp <= 0x9f))
			abort();
		if (c->width == 2 && ((i + 1) % s->cols == 0 || s->cell[i + 1].width != 0))
			abort();
		if (c->width == 0 && (i % s->cols == 0 || s->cell[i - 1].width != 2))
			abort();
	}
}

static void feed_snapshot(struct ui *ui, uint8_t arg, unsigned step)
{
	const struct made m = {
		.nvms = arg & 15,
		.step = step,
		.no_root = arg & 16,
		.no_exits = arg & 32,
		.names = arg & 64,
		.seed = arg & 128 ? arg + step : 0,
	};
	struct snapshot *s = made_snapshot(&m);

	if (s)
		ui_snapshot(ui, s);
	snapshot_unref(s);
}

static uint32_t key_of(uint8_t a, uint8_t b)
{
	if (a & 32)
		return b; /* a character or a control key */
	if (a & 64)
		return (uint32_t)b << 8 | b; /* any character */
	return UK_BASE + 1 + b % 30;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct ui_config cfg = {.delay_s = 1, .utc = true, .can_demo = true};
	struct ui *ui = ui_new(&cfg);
	struct surface *s = surface_new(24, 80);
	struct demand d;

	for (size_t i = 0; ui && s && i + 1 < len && i < 400; i += 2) {
		uint32_t key;

		switch (data[i] & 7) {
		case 0:
			feed_snapshot(ui, data[i + 1], (unsigned)i);
			break;
		case 1:
			surface_resize(s, 1 + data[i] / 4, 1 + data[i + 1]);
			break;
		default:
			key = key_of(data[i], data[i + 1]);
			/* What writes files is tested where it can be looked at. */
			if (key != 'P' && key != 'W')
				ui_key(ui, key);
		}
		s->ascii = data[i] & 128;
		ui_draw(ui, s);
		ui_demand(ui, &d);
		check(s);
	}
	surface_free(s);
	ui_free(ui);
	return 0;
}
