// SPDX-License-Identifier: GPL-2.0-only
/* kvmtop diff A B: what grew and what shrank from one recording or range to another (diff.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "commands.h"
#include "diff.h"
#include "options.h"
#include "out.h"
#include "store.h"
#include "store_time.h"
#include "text.h"

#define ERR_SIZE 600

/* "FILE", "FILE@RANGE" or "@RANGE": a file that is there may have an "@" in its name. */
struct word {
	char *path;
	const char *range; /* in the command line; NULL: all of it */
};

static int split(const char *text, struct word *w)
{
	const char *at = strrchr(text, '@');

	*w = (struct word){0};
	if (!at || access(text, F_OK) == 0) {
		w->path = strdup(text);
	} else {
		w->path = at == text ? strdup(STORE_DEFAULT) : strndup(text, (size_t)(at - text));
		w->range = at + 1;
	}
	return w->path ? 0 : -ENOMEM;
}

static int range_of(struct store *st, const struct word *w, int64_t *from, int64_t *to, char *err)
{
	struct store_range held;
	char safe[100], path[200];
	int rc = store_range(st, &held);

	*from = INT64_MIN;
	*to = INT64_MAX;
	text_escape(path, sizeof(path), w->path);
	if (rc) {
		snprintf(err, ERR_SIZE, "%s: %s", path,
			 rc == -ENOENT ? "there is nothing in it yet" : strerror(-rc));
		return rc;
	}
	if (!w->range || store_time_range(w->range, held.last, from, to))
		return 0;
	text_escape(safe, sizeof(safe), w->range);
	snprintf(err, ERR_SIZE,
		 "'@%s': not a range of time: give 03:00-03:10, 'yesterday 03:12', "
		 "2026-11-29T03:12..2026-11-29T03:20, or -2h",
		 safe);
	return -EINVAL;
}

static void say_empty(struct store *st, const struct word *w, char *err)
{
	char safe[100], path[200], first[40], last[40];
	struct store_range held = {0};

	store_range(st, &held);
	text_escape(path, sizeof(path), w->path);
	text_escape(safe, sizeof(safe), w->range ? w->range : "");
	store_time_text(first, sizeof(first), held.first);
	store_time_text(last, sizeof(last), held.last);
	snprintf(err, ERR_SIZE,
		 "%s: no interval lies in '%s': the recording holds %s to %s (older ones are "
		 "longer)",
		 path, safe, first, last);
}

/* A file of perf is an easy mistake to make: kvmtop reads those too, elsewhere. */
static bool is_perf_data(const char *path)
{
	char head[8] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is = fd >= 0 && read(fd, head, sizeof(head)) == (ssize_t)sizeof(head) &&
		  memcmp(head, "PERFILE2", sizeof(head)) == 0;

	if (fd >= 0)
		close(fd);
	return is;
}

static int read_side(const struct options *o, const struct word *w, struct diff_side *side,
		     char *err)
{
	int64_t from, to;
	struct store *st;
	char path[200];
	int rc;

	if (is_perf_data(w->path)) {
		text_escape(path, sizeof(path), w->path);
		snprintf(err, ERR_SIZE, "%s: a file of perf: diff compares recordings of kvmtop",
			 path);
		return -EINVAL;
	}
	rc = store_open(w->path, &st, err, ERR_SIZE);
	if (rc)
		return rc;
	side->path = w->path;
	side->filter = o->filter;
	rc = range_of(st, w, &from, &to, err);
	if (!rc)
		rc = diff_read(st, from, to, side);
	if (rc == -ENOENT && !err[0])
		say_empty(st, w, err);
	store_close(st);
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
	struct word w[2] = {{0}};
	char err[ERR_SIZE] = "";
	int rc = 0;

	if (o->nwords != 2) {
		fputs("kvmtop: diff: give two recordings or ranges: kvmtop diff FILE FILE, or "
		      "kvmtop diff @03:00-03:10 @04:00-04:10\n",
		      stderr);
		return STATUS_USAGE;
	}
	for (int i = 0; i < 2 && !rc; i++)
		rc = split(o->words[i], &w[i]);
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
	free(w[0].path);
	free(w[1].path);
	return !rc ? STATUS_OK : rc == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}
