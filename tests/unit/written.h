// SPDX-License-Identifier: GPL-2.0-only
/* All that batch says of a snapshot, as one text: by it recordings are compared with what was
 * recorded. */
#ifndef KVMTOP_TESTS_WRITTEN_H
#define KVMTOP_TESTS_WRITTEN_H

#include "batch_table.h"
#include "filter.h"
#include "format.h"
#include "out_text.h"

/* table NULL: the format's own, and the whole. The caller frees the text. */
static inline char *written(const struct format *f, const struct snapshot *s, const char *table,
			    bool total)
{
	struct format_job job = {.whole = !table};
	struct filter *filter = filter_new();
	struct format_state *state = NULL;
	int fd;
	struct out *o = out_text_begin(&fd);
	char err[400] = "";

	job.query =
		(struct batch_query){.table = batch_table_find(table ? table : f->default_table),
				     .filter = filter,
				     .total = total};
	assert_int_equal(f->open(&job, &state, err, sizeof(err)), 0);
	assert_int_equal(f->record(state, o, s), 0);
	f->close(state);
	filter_free(filter);
	return out_text_end(o, fd);
}

#endif
