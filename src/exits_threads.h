// SPDX-License-Identifier: GPL-2.0-only
/* Threads of events: who a tid is, and which vCPU it runs. */
#ifndef KVMTOP_EXITS_THREADS_H
#define KVMTOP_EXITS_THREADS_H

#include "exits.h"

/*
 * A thread that is not in the inventory becomes a provisional VM; pid: its process, 0 not known.
 * NULL: no memory, or no thread.
 */
struct ex_thread *exits_thread(struct exits *x, int32_t tid, int32_t pid);
/* Is it one of a VM's, or was it in this interval? Then exits_thread() makes no VM for it. */
bool exits_known_thread(const struct exits *x, int32_t tid);
/* An event says that the thread runs this vCPU now; the inventory is told. */
void exits_switch_vcpu(struct exits *x, struct ex_thread *t, int kvm_id);

#endif
