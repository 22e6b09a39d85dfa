// SPDX-License-Identifier: GPL-2.0-only
/* kvmtop diff A B: what grew and what shrank from one recording or range to another (diff.h). */
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
#include "store_span.h"
#include "text.h"

#define ERR_SIZE 600

static int read_side(const struct options *o, struct store_span *w, struct diff_side *side,
		     char *err)
{
	char path[200];
	int rc;

	if (store_begins(w->path, "PERFILE2", 8)) {
		text_escape(path, sizeof(path), w->path);
		snprintf(err, ERR_SIZE, "%s: a file of perf: diff compares recordings of kvmtop",
			 path);
		return -EINVAL;
	}
	side->path = w->path;
	side->filter = o->filter;
	rc = store_span_open(w, err, ERR_SIZE);
	if (!rc)
		rc = diff_read(w->store, w->from, w->to, side);
	if (rc == -ENOENT && !err[0])
		store_span_say_empty(w, err, ERR_SIZE);
	if (rc && !err[0]) {
		text_escape(path, sizeof(path), w->path);
		snprintf(err, ERR_SIZE, "%s: %s", path,
			 rc == -EBADMSG ? "damaged there"
			 : rc == -E2BIG ? "more VMs and names than any host has"
					: strerror(-rc));
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
	int rc = 0;

	if (o->nwords != 2) {
		fputs("kvmtop: diff: give two recordings or ranges: kvmtop diff FILE FILE, or "
		      "kvmtop diff @03:00-03:10 @04:00-04:10\n",
		      stderr);
		return STATUS_USAGE;
	}
	for (int i = 0; i < 2 && !rc; i++)
		rc = store_span_split(o->words[i], &w[i]);
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
