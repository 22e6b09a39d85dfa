// SPDX-License-Identifier: GPL-2.0-only
/* The batch formats: one interval's rows as text, CSV, a line of JSON or metrics. */
#ifndef KVMTOP_FORMAT_H
#define KVMTOP_FORMAT_H

#include "batch_table.h"
#include "out.h"

struct format_job {
	struct batch_query query;
	const char *fields; /* --fields, NULL: the format's own choice */
	bool whole; /* json, prometheus without --table: all that it has by default */
};

struct format_state; /* a format's own, for the run */

struct format {
	const char *name;
	const char *default_table;
	/* 0, -ENOMEM, or -EINVAL with one line in err. */
	int (*open)(const struct format_job *j, struct format_state **out, char *err, size_t size);
	/* One interval; nothing at all where --when let no row through. 0 or -ENOMEM. */
	int (*record)(struct format_state *f, struct out *o, const struct snapshot *s);
	void (*close)(struct format_state *f); /* NULL is fine */
};

extern const struct format format_text, format_csv, format_json, format_prometheus;

/* "2026-11-29T14:22:03.512+01:00" in local time; buf ≥ 40. */
void format_time(char *buf, size_t size, struct timespec t);
/* The same to the microsecond. */
void format_time_us(char *buf, size_t size, struct timespec t);
/* Can it be had as metrics? -EINVAL with one line in err, -ENOMEM, or 0. fields: NULL: all. */
int format_prometheus_check(const struct batch_table *t, const char *fields, char *err,
			    size_t size);
/* Whether figures of this unit are whole numbers. */
bool format_is_whole(enum field_unit unit);
/* An untrusted text through one of text.h's escapers, whatever its length. */
void format_escaped(struct out *o, size_t (*escape)(char *, size_t, const char *),
		    const char *text);

#endif
