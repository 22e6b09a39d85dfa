// SPDX-License-Identifier: GPL-2.0-only
/* Rows found by what they are, in an array that grows with them. */
#ifndef KVMTOP_REPORT_SLOTS_H
#define KVMTOP_REPORT_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report_slot {
	uint32_t row; /* its number + 1, 0: free */
	uint32_t hash;
};

/* Zero it before first use; report_slots_free() gives the memory back. */
struct report_slots {
	struct report_slot *slot; /* open addressing, a power of two */
	size_t n;
};

/*
 * Room for one row more beside `used` of `size` bytes: *rows, a pointer to memory of malloc() or
 * NULL, is made larger where it must be. 0 or -ENOMEM, then all is as it was.
 */
int report_slots_room(struct report_slots *s, void *rows, size_t used, size_t size);

/*
 * The number of the row whose hash this is and of which same() is true, plus 1; where it is 0 there
 * is none, and the caller sets it to that of a new row. After report_slots_room() only.
 */
uint32_t *report_slots_find(struct report_slots *s, uint64_t hash,
			    bool (*same)(const void *rows, uint32_t row, const void *what),
			    const void *rows, const void *what);

void report_slots_free(struct report_slots *s);

#endif
