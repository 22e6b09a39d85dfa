// SPDX-License-Identifier: GPL-2.0-only
/* Being heard on a host that has no CPU left: that is when kvmtop is needed. */
#ifndef KVMTOP_PRIORITY_H
#define KVMTOP_PRIORITY_H

/*
 * The calling thread goes first among those of usual priority, where that is allowed: between 400
 * vCPUs that spin on two CPUs an interval of half a second took up to a minute without. It does not
 * get more CPU than it needs by that, only sooner. One who started kvmtop with another priority
 * meant it: nothing happens then. Threads that the caller makes afterwards inherit it, and so do
 * processes.
 */
void priority_raise(void);

#endif
