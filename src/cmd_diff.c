// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmtop diff A B: what grew and what shrank from one recording or range, or file of perf's, to
 * another (diff.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "diff.h"
#include "options.h"
#include "out.h"
#include "report_cut.h"
#include "report_side.h"
#include "store_span.h"
#include "text.h"

#define ERR_SIZE 600

static bool is_of_perf(const char *path)
{
	return store_begins(path, "PERFILE2", 8) || store_begins(path, "2ELIFREP", 8);
}

/* What a file of perf's cannot be asked for; -M chooses in a recording beside it. */
static int check_perf(const struct options *o, const struct store_span *w, char *err)
{
	bool perf[2] = {is_of_perf(w[0].path), is_of_perf(w[1].path)};

	if (perf[0] && perf[1] && o->by_name) {
		snprintf(err, ERR_SIZE,
			 "--vm: files of perf's have no names of VMs: leave it away");
		return -EINVAL;
	}
	for (int i = 0; i < 2; i++) {
		if (!perf[i] || !w[i].range)
			continue;
		snprintf(err, ERR_SIZE,
			 "'@': a file of perf's has no time of day: leave the range away");
		return -EINVAL;
	}
	return 0;
}

static int read_side(const struct options *o, struct store_span *w, struct diff_side *side,
		     char *err)
{
	char path[200];
	int rc;

	side->path = w->path;
	side->filter = o->filter;
	if (is_of_perf(w->path))
		return report_side_read(side, &o->guest_files, err, ERR_SIZE);
	rc = store_span_open(w, err, ERR_SIZE);
	if (!rc)
		rc = diff_read(w->store, w->from, w->to, side);
	if (rc == -ENOENT && !err[0])
		store_span_say_empty(w, err, ERR_SIZE);
	if (rc && !err[0]) {
		text_escape(path, sizeof(path), w->path);
		snprintf(err, ERR_SIZE, "%s: %s", path,
			 rc == -E2BIG ? "more VMs and names than any host has"
				      : store_strerror(rc));
	}
	return rc;
}

static int write_out(const struct options *o, const struct diff *d)
{
	struct out *out = out_new(STDOUT_FILENO, -1, 0);
	int rc = 0;

	if (!out)
		return -ENOMEM;
	if (o->format == FORMAT_JSON)
		rc = diff_json(d, out);
	else if (o->format == FORMAT_CSV)
		diff_csv(d, out);
	else
		diff_text(d, o->rows, out);
	if (!rc)
		rc = out_flush(out);
	out_free(out);
	return rc == -EPIPE ? 0 : rc;
}

static int match(const struct options *o, struct diff *d, char *err)
{
	const char **map = calloc(o->merge.n + 1, sizeof(*map));
	int rc = -ENOMEM;

	for (size_t i = 0; i < o->merge.n && map; i++)
		map[i] = o->merge.word[i].arg;
	if (map)
		rc = diff_match(d, map, o->merge.n, err, ERR_SIZE);
	free(map);
	return rc;
}

int cmd_diff(const struct options *o)
{
	struct diff d = {.side = {{.label = "A"}, {.label = "B"}}};
	struct store_span w[2] = {{0}};
	char err[ERR_SIZE] = "";
	bool parts;
	int rc = 0;

	report_cut_guard();
	parts = o->sample_host && o->sample_guest && o->nwords == 1;
	if ((o->sample_host || o->sample_guest) && !parts) {
		fputs("kvmtop: diff: --host and --guest together compare the two sides of one "
		      "file: kvmtop diff --host --guest FILE\n",
		      stderr);
		return STATUS_USAGE;
	}
	if (o->nwords != 2 && !parts) {
		fputs("kvmtop: diff: give two recordings or ranges, or files of perf's: kvmtop "
		      "diff FILE FILE, or kvmtop diff @03:00-03:10 @04:00-04:10\n",
		      stderr);
		return STATUS_USAGE;
	}
	for (int i = 0; i < 2 && !rc; i++)
		rc = store_span_split(o->words[parts ? 0 : i], &w[i]);
	if (parts) {
		d.side[0].part = DIFF_HOST_PART;
		d.side[1].part = DIFF_GUEST_PART;
	}
	if (!rc)
		rc = check_perf(o, w, err);
	for (int i = 0; i < 2 && !rc; i++)
		rc = read_side(o, &w[i], &d.side[i], err);
	if (!rc)
		rc = match(o, &d, err);
	if (!rc)
		rc = diff_compare(&d);
	if (!rc)
		rc = write_out(o, &d);
	if (rc)
		fprintf(stderr, "kvmtop: %s\n", err[0] ? err : strerror(-rc));
	diff_free(&d);
	store_span_close(&w[0]);
	store_span_close(&w[1]);
	return !rc ? STATUS_OK : rc == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}
