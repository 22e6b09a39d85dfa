// SPDX-License-Identifier: GPL-2.0-only
/*
 * Any command line, a word a line: it is taken or refused with one line that is safe on a
 * terminal.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

#define MAX_WORDS 40

static void check_error(const char *err, size_t size)
{
	if (strnlen(err, size) == size || !*err)
		abort();
	for (; *err; err++)
		if ((unsigned char)*err < 0x20 || *err == 0x7f)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char name[] = "kvmtop", *argv[MAX_WORDS + 1] = {name}, *text = malloc(len + 1);
	char err[400], *rest = text, *word;
	struct options o;
	int argc = 1;

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	while (argc < MAX_WORDS && (word = strsep(&rest, "\n")) != NULL)
		if (*word)
			argv[argc++] = word;
	argv[argc] = NULL;
	if (options_parse(argc, argv, &o, err, sizeof(err)))
		check_error(err, sizeof(err));
	else if (o.action == ACTION_RUN && (!o.command || o.delay_s < 0.1))
		abort();
	options_free(&o);
	free(text);
	return 0;
}
