// SPDX-License-Identifier: GPL-2.0-only
/* Arrays that grow by one element at a time. */
#ifndef KVMTOP_GROW_H
#define KVMTOP_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/*
 * Room for one element more than the n of `size` bytes in *array, a pointer to a pointer of any
 * type, which has *room of them: twice as many where it is full. False: no memory, and all is as it
 * was.
 */
static inline bool grow(void *array, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 8;
	void *old, *new;

	if (n < *room)
		return true;
	memcpy(&old, array, sizeof(old));
	new = reallocarray(old, more, size);
	if (!new)
		return false;
	memcpy(array, &new, sizeof(new));
	*room = more;
	return true;
}

#endif
