// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hand-over of snapshots from the collecting thread to one who reads them: a short
 * queue behind a lock that is never held for longer than a pointer's move, so that a
 * stalled terminal or a slow disk stalls nobody else.
 */
#ifndef KVMTOP_READER_H
#define KVMTOP_READER_H

#include "engine.h"

/* depth ≥ 1; NULL: no memory or no descriptor. */
struct reader *reader_new(struct engine *e, unsigned depth);
void reader_free(struct reader *r); /* drops what waits; NULL is fine */
/* Takes its own reference. */
void reader_put(struct reader *r, struct snapshot *s);
/* In place of snapshots that could not be made; rc: -errno. */
void reader_fail(struct reader *r, int rc);
/* What the reader asked for last; true where that changed since the last call. */
bool reader_wants(struct reader *r, struct demand *out);
/* Called by reader_demand() after a change; the engine wakes its thread. */
void engine_poke(struct engine *e);

#endif
