// SPDX-License-Identifier: GPL-2.0-only
/* All that batch says of a snapshot, as one text: by it recordings are compared with what was
 * recorded. */
#ifndef KVMTOP_TESTS_WRITTEN_H
#define KVMTOP_TESTS_WRITTEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "batch_table.h"
#include "filter.h"
#include "format.h"
#include "out.h"

/* table NULL: the format's own, and the whole. The caller frees the text. */
static inline char *written(const struct format *f, const struct snapshot *s, const char *table,
			    bool total)
{
	struct format_job job = {.whole = !table};
	struct filter *filter = filter_new();
	struct format_state *state = NULL;
	int fd = memfd_create("out", 0);
	struct out *o = out_new(fd, -1, 0);
	char err[400] = "", *text;
	struct stat sb;

	job.query =
		(struct batch_query){.table = batch_table_find(table ? table : f->default_table),
				     .filter = filter,
				     .total = total};
	assert_int_equal(f->open(&job, &state, err, sizeof(err)), 0);
	assert_int_equal(f->record(state, o, s), 0);
	assert_int_equal(out_flush(o), 0);
	assert_int_equal(fstat(fd, &sb), 0);
	text = calloc(1, (size_t)sb.st_size + 1);
	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)sb.st_size, 0), sb.st_size);
	f->close(state);
	filter_free(filter);
	out_free(o);
	close(fd);
	return text;
}

#endif
