// SPDX-License-Identifier: GPL-2.0-only
/* A report of any bytes, by both rules and in every form: it ends, and its sums are sums. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "out.h"
#include "perfdata.h"
#include "report.h"
#include "report_out.h"

/* libtraceevent forgets what it has read of a text that turns out to be malformed. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libtraceevent";
}

static void check(const struct report *r)
{
	for (unsigned k = 0; k < KIND_NR; k++)
		for (size_t i = 0; i < r->figures[k].n; i++) {
			const struct report_row *row = r->figures[k].row[i];

			if (row->timed > row->count || (row->timed && row->min_ns > row->max_ns))
				abort();
		}
}

static void put(const struct report *r, const struct perfdata *p)
{
	struct report_view v = {.r = r, .sum = perfdata_sum(p), .file = "f", .sort = SORT_P99};
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct out *o = out_new(fd, -1, 0);

	if (o) {
		(void)report_put_text(&v, o);
		(void)report_put_csv(&v, o);
		(void)report_put_json(&v, o);
		(void)report_put_differences(&v, o);
		for (unsigned k = 0; k < KIND_NR; k++)
			(void)report_put_as_perf(&v, perfdata_text(p, PERFDATA_CPUID),
						 (enum kvm_kind)k, o);
		(void)out_flush(o);
	}
	out_free(o);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct report_query q = {.kinds = REPORT_KINDS, .figures = true, .as_perf = true};
	struct perfdata *p;
	struct report r;

	if (perfdata_parse(data, len, &p))
		return 0;
	if (!report_prepare(&r, &q, p, -1) && !report_read(&r, p)) {
		check(&r);
		put(&r, p);
	}
	report_free(&r);
	perfdata_free(p);
	return 0;
}
