// SPDX-License-Identifier: GPL-2.0-only
/*
 * Every write of a guest's TSC offset, for recordings: kvm_write_tsc_offset in an ftrace instance
 * of our own, whose clock is the TSC itself. They are rare; in a buffer of its own none is
 * overwritten.
 */
#ifndef KVMTOP_TSC_WRITES_H
#define KVMTOP_TSC_WRITES_H

#include <stddef.h>
#include <stdint.h>

struct collector_env;
struct tsc_writes;

/* 0 or -errno with one line in err. */
int tsc_writes_open(const struct collector_env *env, struct tsc_writes **out, char *err,
		    size_t size);
/* Hands what came since to the sink; those of a VM that is not known yet wait for it. NULL is fine.
 */
void tsc_writes_read(struct tsc_writes *w, int64_t now);
void tsc_writes_close(struct tsc_writes *w); /* NULL is fine */

#endif
