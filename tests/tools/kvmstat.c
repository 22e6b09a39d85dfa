// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmstat [--as-perf] FILE: what kvmtop's own rings, decoding, pairing and model make of a
 * recording of `perf kvm stat record`, as perf's report would show it: a line a row, each after its
 * kind (tests/unit/replay.h). --as-perf leaves out what perf leaves out. The last line is of
 * counts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "replay.h"

static const char *const kinds[KIND_NR] = {"vmexit",	"mmio",	    "ioport", "msr",
					   "hypercall", "userexit", "halt"};

int main(int argc, char **argv)
{
	bool as_perf = argc > 2 && !strcmp(argv[1], "--as-perf");
	struct perfdata *p;
	struct snapshot *s;
	struct replay r;
	char row[256];
	int rc = argc > 1 ? perfdata_open(AT_FDCWD, argv[argc - 1], &p) : -EINVAL;

	if (rc) {
		fprintf(stderr, "kvmstat: %s\n", strerror(-rc));
		return 1;
	}
	s = replay_all(&r, p, as_perf);
	if (!s) {
		fprintf(stderr, "kvmstat: %s\n", strerror(-r.err));
		return 1;
	}
	for (size_t i = 0; i < s->nexits; i++)
		if (replay_row(s, &s->exits[i], row, sizeof(row)))
			printf("%s %s\n", kinds[s->exits[i].kind], row);
	printf("samples %" PRIu64 " left_out %" PRIu64 " lost %" PRIu64 " broken %" PRIu64
	       " undecoded %" PRIu64 " late %" PRIu64 " unmatched %" PRIu64 "\n",
	       r.samples, r.left_out, r.lost, r.broken, r.undecoded, s->host.late,
	       s->host.unmatched);
	snapshot_unref(s);
	replay_free(&r);
	perfdata_free(p);
	return 0;
}
