// SPDX-License-Identifier: GPL-2.0-only
/* A line that is typed: filter, search, delay, file name. Holds UTF-8. */
#ifndef KVMTOP_PROMPT_H
#define KVMTOP_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "surface.h"

#define PROMPT_SIZE 256

enum prompt_result { PROMPT_GOES_ON, PROMPT_CHANGED, PROMPT_DONE, PROMPT_CANCELLED };

struct prompt {
	char label[32];
	char text[PROMPT_SIZE];
	size_t len, cur; /* bytes */
	bool proposed; /* the text is a proposal: the first character typed replaces it */
};

void prompt_start(struct prompt *p, const char *label, const char *text);
/* The same with a value to take or to replace: a character replaces it, an editing key keeps it. */
void prompt_propose(struct prompt *p, const char *label, const char *text);
enum prompt_result prompt_key(struct prompt *p, uint32_t key);
/* Draws it into line 0 of the area and puts the cursor there. */
void prompt_draw(const struct prompt *p, const struct area *a);

#endif
