// SPDX-License-Identifier: GPL-2.0-only
/* ftrace's text: whatever a file holds, events are found within their blocks and the file ends. */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracetext.h"
#include "tsc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const struct tracetext_event *e, void *ctx)
{
	uint64_t *n = ctx;

	assert(e->stamp + e->stamp_len <= e->len);
	++*n;
}

static uint64_t read_all(int fd, int cpu)
{
	enum tracetext_clock clock;
	struct tracetext_event e;
	struct tracetext_cpus cpus = {0};
	struct tracetext *t;
	uint64_t n = 0, peeked = 0;

	assert(tracetext_open(fd, 0, &t) == 0);
	assert(tracetext_clock(t, &clock) == 0);
	assert(tracetext_peek(t, 100, look, &peeked) == 0);
	if (cpu >= 0)
		tracetext_add_cpu(&cpus, (unsigned)cpu);
	if (cpu >= 0)
		assert(tracetext_only(t, &cpus, 0) == 0);
	while (tracetext_next(t, &e) == 1) {
		struct tsc_epoch epoch;

		assert(e.line + e.line_len <= e.len);
		assert(e.stamp >= e.line && e.stamp_len &&
		       e.stamp + e.stamp_len <= e.line + e.line_len);
		assert(e.name + e.name_len <= e.len && e.cpu < TRACETEXT_CPUS);
		assert(cpu < 0 || e.cpu == (unsigned)cpu);
		tsc_epoch_parse(e.text + e.name, e.len - e.name, &epoch);
		n++;
	}
	assert(n >= peeked || cpu >= 0);
	tracetext_close(t);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	read_all(fd, -1);
	read_all(fd, 1);
	close(fd);
	return 0;
}
