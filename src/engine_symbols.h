// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine's step between collector and model: what is at the address of a sample.
 *
 * Whose thread it was says the inventory, which guest kernel, program or host kernel lies there
 * says symbols/; the model gets numbers, and asks back for their names when a row is made. The
 * collecting thread only.
 */
#ifndef KVMTOP_ENGINE_SYMBOLS_H
#define KVMTOP_ENGINE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine_symbols;
struct guest_files;
struct inventory;
struct ip_sample;
struct sample;
struct model;
struct sysroot;

/* All of them outlive it; files may be NULL. 0 or -errno. */
int engine_symbols_new(struct sysroot *root, const struct guest_files *files, struct inventory *inv,
		       struct model *model, struct engine_symbols **out);
/* Takes itself back from inventory and model. NULL is fine. */
void engine_symbols_free(struct engine_symbols *e);
/* For epoll: readable when something was loaded; then engine_symbols_ready(). */
int engine_symbols_fd(const struct engine_symbols *e);
void engine_symbols_ready(struct engine_symbols *e);
/* Samples will come: the host kernel's symbols are read from now on. */
void engine_symbols_begin(struct engine_symbols *e);
/*
 * The sink's ips(): resolves and hands to the model, those whose symbols are just being read when
 * they are there, at the end of the interval at the latest. ctx: the engine_symbols.
 */
void engine_symbols_ips(void *ctx, const struct ip_sample *s, size_t n);
/* The sink's exits(): a few of them tell whether a guest's symbols are right. ctx as above. */
void engine_symbols_exits(void *ctx, const struct sample *s, size_t n);
/* As of the last tick: exits would tell something of some guest's symbols. */
bool engine_symbols_checks_exits(const struct engine_symbols *e);
/* As of the last tick: the slide of a guest's kernel is still to be found, which more exits tell
 * sooner. */
bool engine_symbols_wants_exits(const struct engine_symbols *e);
/* Once an interval: looks whether the symbols still fit what is sampled. */
void engine_symbols_tick(struct engine_symbols *e, int64_t now_ns);

#endif
