// SPDX-License-Identifier: GPL-2.0-only
/*
 * CPU and steal of any course of readings: whatever the counters do, a figure that is said to be
 * known is one that can be.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "use.h"

#define STEP 12 /* bytes a reading */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Small steps, and now and then an absurd one, up or down. */
static uint64_t moved(uint64_t v, uint8_t by, uint64_t unit)
{
	if (by == 255)
		return v - unit * 1000;
	return by == 254 ? v + (UINT64_MAX >> 2) : v + by * unit;
}

static void hold(int ok)
{
	if (!ok)
		abort();
}

static void check(const struct snap_use *u)
{
	const struct value all[] = {u->cpu,  u->guest,	u->usr, u->sys, u->steal,  u->throt,
				    u->wait, u->demand, u->csw, u->mig, u->majflt, u->blk};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		hold(!value_has(all[i]) || (isfinite(all[i].v) && all[i].v >= 0));
	hold(!value_has(u->throt) || u->throt.v <= 100);
	if (value_has(u->steal))
		hold(u->steal.v <= 100 &&
		     u->steal.v + u->cpu.v <= 100.001 + (u->cpu.v > 100) * 900);
	if (value_has(u->usr) && value_has(u->sys) && value_has(u->guest))
		hold(u->usr.v + u->sys.v + u->guest.v <= u->cpu.v * 1.001 + 0.001);
}

static void take(struct thread_reading *r, const uint8_t *b)
{
	static const char states[] = "RRRRSDTZ";

	r->time += 1000000 + (int64_t)b[0] * 10000000;
	r->state = states[b[1] & 7];
	r->has_sched = (b[1] & 0x18) != 0x18;
	r->has_vol = b[1] & 0x20;
	r->has_nonvol = b[1] & 0x40;
	r->has_gstime = b[1] & 0x80;
	r->has_gtime = b[2] & 1;
	r->cpu = (b[2] >> 1) - 1;
	r->run_ns = moved(r->run_ns, b[3], 10000000);
	r->delay_ns = moved(r->delay_ns, b[4], 10000000);
	r->nr_sched = moved(r->nr_sched, b[5], 1);
	r->vol = moved(r->vol, b[6], 1);
	r->nonvol = moved(r->nonvol, b[7], 1);
	r->utime = moved(r->utime, b[8], 1);
	r->stime = moved(r->stime, b[9], 1);
	r->gtime = moved(r->gtime, b[10], 1);
	r->gstime = moved(r->gstime, b[11], 1);
	r->majflt = r->gtime;
	r->blkio_ticks = r->stime;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct thread_reading r = {.time = 1000000000};
	struct use_state u = {0};
	struct use_quota q = {0};

	for (; size >= STEP; data += STEP, size -= STEP) {
		struct quota_reading qr = {.has = data[2] & 1};
		struct use_sum sum = {0};
		struct snap_use out;

		take(&r, data);
		use_reading(&u, &r, 100);
		qr.time = r.time;
		qr.throttled_ns = r.delay_ns;
		use_quota_reading(&q, &qr);
		use_result(&u, data[1] & 1 ? &q : NULL, &out);
		check(&out);
		use_sum_add(&sum, &out, true);
		use_sum_add(&sum, &out, data[2] & 1);
		use_sum_result(&sum, &out);
	}
	return 0;
}
