// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guests of `kvmtop demo`: small real VMs with known, different behaviour.
 *
 *  demo-busy     one vCPU, 60% of a CPU in guest mode, few exits
 *  demo-exits    two vCPUs that leave guest mode all the time (MSR, port, MMIO)
 *  demo-starved  three vCPUs; 1 and 2 spin, pinned to one CPU, and 2 loses
 *
 * All of them are nice, and together they take less than two CPUs.
 */
#ifndef KVMTOP_DEMO_H
#define KVMTOP_DEMO_H

#include <stddef.h>

struct demo;

/* The hidden command by which kvmtop starts itself as a guest: main() hands over to
 * demo_guest_main() when argv[1] is this. */
#define DEMO_GUEST_COMMAND "demo-guest"

/*
 * Starts the guests as child processes. Call it from a thread that lives as long as they
 * shall (the kernel ends them with it). 0 or -errno; err then has one line: why not and
 * what mends it.
 */
int demo_start(struct demo **out, char *err, size_t errsize);
/* Ends them and waits for that. NULL is fine. */
void demo_stop(struct demo *d);

/* A guest's process: returns its exit status. */
int demo_guest_main(int argc, char **argv);

#endif
