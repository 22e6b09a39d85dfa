// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last minutes: snapshots kept within a budget of bytes, the older the thinner.
 *
 * Used by one thread. Snapshots in it are held by a reference each.
 */
#ifndef KVMTOP_HISTORY_H
#define KVMTOP_HISTORY_H

#include <stddef.h>
#include <stdint.h>

struct snapshot;
struct history;

#define HISTORY_BYTES (16u << 20)

struct history *history_new(size_t budget); /* bytes; NULL: no memory */
void history_free(struct history *h); /* NULL is fine */
/* Takes a reference of its own. 0 or -ENOMEM. Snapshots come in order of time. */
int history_push(struct history *h, struct snapshot *s);
size_t history_n(const struct history *h);
size_t history_bytes(const struct history *h);
/* 0 is the oldest; borrowed, valid until the next push. NULL outside. */
struct snapshot *history_at(const struct history *h, size_t i);
/* Index of the last one not after `time` (ns, CLOCK_MONOTONIC); 0 when all are. */
size_t history_find(const struct history *h, int64_t time);

#endif
