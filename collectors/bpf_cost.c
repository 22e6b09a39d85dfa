// SPDX-License-Identifier: GPL-2.0-only
/* Measured cost of programs in the kernel; see bpf_cost.h. */
#include "bpf_cost.h"

#include <string.h>

#ifdef KVMTOP_BPF

#include <bpf/bpf.h>
#include <unistd.h>

#include "clock.h"

#define AGAIN (60 * NS_PER_S) /* from one measuring to the next */
#define ENOUGH 200 /* runs that a mean is taken of */

/*
 * What the kernel needs beside, to make the record and to come to a program, which its own figure
 * lacks. A port write of two events took 656 ns more of CPU with our programs at it than without
 * (6.18, no hardware virtualisation): rather more than half of that is taken for the way.
 */
#define WAY_NS 180.0
/*
 * The same of programs that measure themselves, on that machine: an exit of two events took 627 ns
 * more with them, of which they saw 317, a look at the clock each included; 490 with programs that
 * do nothing. docs/BENCHMARKS.md has how that was measured.
 */
#define SAMPLE_WAY_NS 155.0

void bpf_cost_init(struct bpf_cost *c, double assumed)
{
	memset(c, 0, sizeof(*c));
	c->each = assumed;
	c->measuring = -1;
}

void bpf_cost_add(struct bpf_cost *c, int fd)
{
	if (fd >= 0 && c->n < BPF_COST_PROGRAMS)
		c->program[c->n++] = fd;
}

static void read_programs(const struct bpf_cost *c, uint64_t *ns, uint64_t *runs)
{
	*ns = *runs = 0;
	for (unsigned i = 0; i < c->n; i++) {
		struct bpf_prog_info info = {0};
		__u32 len = sizeof(info);

		if (bpf_obj_get_info_by_fd(c->program[i], &info, &len))
			continue;
		*ns += info.run_time_ns;
		*runs += info.run_cnt;
	}
}

void bpf_cost_end(struct bpf_cost *c)
{
	if (c->measuring >= 0)
		close(c->measuring);
	c->measuring = -1;
}

/* A kernel < 5.8 has no such thing, and who is not root may lack the right: then it is assumed. */
static void begin(struct bpf_cost *c, int64_t now)
{
	c->next = now + AGAIN;
	c->measuring = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (c->measuring >= 0)
		read_programs(c, &c->ns, &c->runs);
}

/* Where hardly anything happens the measuring goes on, which then costs nothing either. */
static void finish(struct bpf_cost *c, int64_t now, uint64_t units)
{
	uint64_t ns, runs;

	read_programs(c, &ns, &runs);
	ns -= c->ns;
	runs -= c->runs;
	if (!units || runs < ENOUGH) {
		c->ns += ns;
		c->runs += runs;
		return;
	}
	c->each = ((double)ns + (double)runs * WAY_NS) / (double)units;
	c->next = now + AGAIN;
	bpf_cost_end(c);
}

uint64_t bpf_cost_tick(struct bpf_cost *c, int64_t now, uint64_t units)
{
	if (c->measuring >= 0)
		finish(c, now, units);
	else if (c->n && units && now >= c->next)
		begin(c, now);
	return (uint64_t)(c->each * (double)units);
}

uint64_t bpf_cost_sampled(struct bpf_cost *c, uint64_t ns, uint64_t samples, uint64_t runs)
{
	c->ns += ns;
	c->runs += samples;
	if (c->runs >= ENOUGH) {
		c->each = (double)c->ns / (double)c->runs + SAMPLE_WAY_NS;
		c->ns = c->runs = 0;
	}
	return (uint64_t)(c->each * (double)runs);
}

#endif
