// SPDX-License-Identifier: GPL-2.0-only
/* The options of `kvmtop merge` (options_merge.h). Values are judged when all words are there. */
#include "options_merge.h"

#include <errno.h>
#include <stdlib.h>

#include "options.h"

static int keep(struct options *o, char what, const char *arg)
{
	struct merge_word *more = reallocarray(o->merge.word, o->merge.n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	o->merge.word = more;
	more[o->merge.n++] = (struct merge_word){what, arg};
	return 0;
}

int options_host_trace(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	return keep(o, 'H', arg);
}

int options_guest_trace(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	return keep(o, 'G', arg);
}

int options_offset(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	return keep(o, 'o', arg);
}

int options_scaling(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	return keep(o, 's', arg);
}

int options_map(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	return keep(o, 'm', arg);
}

int options_tsc(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	return keep(o, 't', arg);
}

int options_recording(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	return keep(o, 'r', arg);
}
