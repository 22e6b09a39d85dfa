// SPDX-License-Identifier: GPL-2.0-only
/* A vCPU's file pmu in debugfs of any bytes, and the words that come of what it says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pmu.h"

static void say(const struct pmu_state *s, size_t size)
{
	char *out = malloc(size);

	if (!out)
		return;
	pmu_summary(s, out, size);
	for (size_t i = 0; i < s->n; i++) {
		pmu_event_name(s, &s->counter[i], out, size);
		pmu_event_mode(s, &s->counter[i], out, size);
		pmu_note(s, &s->counter[i], 0.5, out, size);
		if (strlen(out) >= size)
			abort();
	}
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct pmu_state s;
	char *in = malloc(len ? len : 1);

	if (!in)
		return 0;
	memcpy(in, data, len);
	if (!pmu_parse(in, len, &s)) {
		if (s.n != s.gp + s.fixed || s.n > PMU_COUNTERS)
			abort();
		for (int v = PMU_VENDOR_UNKNOWN; v <= PMU_AMD; v++) {
			s.vendor = (uint8_t)v;
			say(&s, 1);
			say(&s, 200);
		}
	}
	free(in);
	return 0;
}
