// SPDX-License-Identifier: GPL-2.0-only
/*
 * An interval of a recording, of any bytes: refused, or a snapshot that can be recorded again, made
 * part of a longer one, shown, and recorded without its names.
 */
#include <stdlib.h>
#include <string.h>

#include "anonymize.h"
#include "store_code.h"
#include "store_merge.h"
#include "store_reduce.h"
#include "surface.h"
#include "ui.h"

static uint32_t any_id(void *ctx, const char *text)
{
	(void)ctx;
	return 1 + (uint8_t)text[0];
}

static const char *any_text(void *ctx, uint32_t id)
{
	static const char *const texts[] = {"web01", "MSR_WRITE", "\x1b[31m", "\xff\xfe", "other"};

	(void)ctx;
	return texts[id % (sizeof(texts) / sizeof(texts[0]))];
}

static void show(struct snapshot *s)
{
	const struct ui_config cfg = {.delay_s = 1, .utc = true, .replay = true};
	static const char keys[] = "g2\r\r1234569";
	struct surface *f = surface_new(30, 100);
	struct ui *ui = ui_new(&cfg);

	if (!f || !ui)
		abort();
	ui_snapshot(ui, s);
	for (const char *k = keys; *k; k++) {
		ui_draw(ui, f);
		ui_key(ui, (unsigned char)*k);
	}
	ui_draw(ui, f);
	ui_free(ui);
	surface_free(f);
}

static void without_names(struct snapshot *s)
{
	const struct store_texts texts = {.id = any_id, .text = any_text};
	struct anon *a = anon_new();
	struct store_put p = {0};

	if (!a || anon_learn(a, s) || anon_snapshot(a, s) || store_check(s) ||
	    store_encode(s, &texts, &p))
		abort();
	store_put_free(&p);
	anon_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct store_texts texts = {.id = any_id, .text = any_text};
	struct snapshot *s, *less, *longer, *sum, *part[2];
	struct store_put p = {0};

	if (store_decode(data, len, &texts, &s))
		return 0;
	less = store_reduce(s);
	if (!less || store_check(less) || store_encode(less, &texts, &p))
		abort();
	store_put_free(&p);
	longer = store_reduce_longer(s);
	if (!longer || store_check(longer) || store_encode(longer, &texts, &p))
		abort();
	store_put_free(&p);
	snapshot_unref(longer);
	part[0] = less;
	part[1] = s;
	if (store_merge(part, 2, &sum) || store_check(sum))
		abort();
	if (s->bytes < 1 << 20) /* a screen of thousands of rows takes its time */
		show(sum);
	snapshot_unref(sum);
	snapshot_unref(less);
	without_names(s);
	snapshot_unref(s);
	return 0;
}
