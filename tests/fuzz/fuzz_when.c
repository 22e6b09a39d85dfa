// SPDX-License-Identifier: GPL-2.0-only
/* Any --when expression: parsed or refused with one line; what is parsed can be judged. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/made.h"
#include "batch_table.h"
#include "when.h"

static void judge(struct when *w, const struct batch_table *t)
{
	struct filter *f = filter_new();
	struct batch_query q = {.table = t, .filter = f, .when = w};
	struct batch_rows rows = {0};
	struct made m;

	made_fill(&m);
	for (int i = 0; i < 3 && f; i++)
		batch_rows_collect(&q, &m.s, &rows);
	batch_rows_free(&rows);
	filter_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct batch_table *t;
	struct when *w = NULL;
	char *text, err[400];

	if (!len)
		return 0;
	t = &batch_tables[data[0] % batch_ntables];
	text = malloc(len);
	if (!text)
		return 0;
	memcpy(text, data + 1, len - 1);
	text[len - 1] = '\0';
	if (when_parse(text, t, &w, err, sizeof(err))) {
		if (w || strnlen(err, sizeof(err)) == sizeof(err) || !*err || strchr(err, '\n'))
			abort();
	} else {
		judge(w, t);
	}
	when_free(w);
	free(text);
	return 0;
}
