// SPDX-License-Identifier: GPL-2.0-only
/* What is written through an out, as a text. */
#ifndef KVMTOP_TESTS_OUT_TEXT_H
#define KVMTOP_TESTS_OUT_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "out.h"

/* *fd is for out_text_end(). */
static inline struct out *out_text_begin(int *fd)
{
	struct out *o;

	*fd = memfd_create("out", 0);
	o = out_new(*fd, -1, 0);
	assert_non_null(o);
	return o;
}

/* All of it; the caller frees the text. */
static inline char *out_text_end(struct out *o, int fd)
{
	struct stat sb;
	char *text;

	assert_int_equal(out_flush(o), 0);
	assert_int_equal(fstat(fd, &sb), 0);
	text = calloc(1, (size_t)sb.st_size + 1);
	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)sb.st_size, 0), sb.st_size);
	out_free(o);
	close(fd);
	return text;
}

#endif
