// SPDX-License-Identifier: GPL-2.0-only
/* Recordings and their ranges as a command line names them (store_span.h). */
#include "store_span.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include "store_time.h"
#include "text.h"

bool store_begins(const char *path, const char *magic, size_t n)
{
	struct stat sb;
	char head[16];
	bool is;
	int fd;

	/* Nothing is to be read out of a pipe here. */
	if (n > sizeof(head) || stat(path, &sb) || !S_ISREG(sb.st_mode))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	is = fd >= 0 && read(fd, head, n) == (ssize_t)n && memcmp(head, magic, n) == 0;
	if (fd >= 0)
		close(fd);
	return is;
}

bool store_span_is_recording(const struct store_span *s)
{
	static const char magic[16] = "SQLite format 3";

	return s->range || store_begins(s->path, magic, sizeof(magic));
}

int store_span_split(const char *word, struct store_span *s)
{
	const char *at = word ? strrchr(word, '@') : NULL;

	*s = (struct store_span){.from = INT64_MIN, .to = INT64_MAX};
	if (!at || access(word, F_OK) == 0) {
		s->path = strdup(word ? word : STORE_DEFAULT);
	} else {
		s->path = at == word ? strdup(STORE_DEFAULT) : strndup(word, (size_t)(at - word));
		s->range = at + 1;
	}
	return s->path ? 0 : -ENOMEM;
}

bool store_span_holds(struct store *st, const struct store_range *held, int64_t from, int64_t to)
{
	struct store_at first = {0};

	if (store_find(st, STORE_FROM, held->first, &first))
		return false;
	return from <= held->last && to >= first.wall - first.dt;
}

static int find_range(struct store_span *s, char *err, size_t size)
{
	char safe[100], path[200];
	int rc = store_range(s->store, &s->held);

	if (rc) {
		text_escape(path, sizeof(path), s->path);
		snprintf(err, size, "%s: %s", path,
			 rc == -ENOENT ? "there is nothing in it yet" : store_strerror(rc));
		return rc;
	}
	if (!s->range)
		return 0;
	if (store_time_range(s->range, s->held.newest, &s->from, &s->to)) {
		if (store_span_holds(s->store, &s->held, s->from,
				     store_time_asked_end(s->range, s->from, s->to)))
			return 0;
		store_span_say_empty(s, err, size);
		return -ENOENT;
	}
	text_escape(safe, sizeof(safe), s->range);
	if (s->from > s->to)
		snprintf(err, size, "'@%s': its end is before its beginning", safe);
	else
		snprintf(err, size,
			 "'@%s': not a range of time: give 03:00-03:10, 'yesterday 03:12', "
			 "2026-11-29T03:12..2026-11-29T03:20, or -2h",
			 safe);
	return -EINVAL;
}

int store_span_open(struct store_span *s, char *err, size_t size)
{
	int rc = store_open(s->path, &s->store, err, size);

	return rc ? rc : find_range(s, err, size);
}

void store_span_close(struct store_span *s)
{
	store_close(s->store);
	free(s->path);
	s->store = NULL;
	s->path = NULL;
}

void store_span_say_empty(const struct store_span *s, char *err, size_t size)
{
	char safe[100], path[200], first[40], last[40];

	text_escape(path, sizeof(path), s->path);
	text_escape(safe, sizeof(safe), s->range ? s->range : "");
	store_time_text(first, sizeof(first), s->held.first);
	store_time_text(last, sizeof(last), s->held.last);
	snprintf(err, size,
		 "%s: no interval lies in '%s': the recording holds %s to %s (older ones are "
		 "longer)",
		 path, safe, first, last);
}

int store_span_next(struct store *st, int64_t from, int64_t to, struct store_at *at)
{
	int rc;

	do {
		rc = store_next_within(st, at->id, from, to, at);
	} while (!rc && !store_within(at, from, to));
	return rc;
}
