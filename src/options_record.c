// SPDX-License-Identifier: GPL-2.0-only
/* The options of record, replay and trace, --slow, and how a value that is none is refused
 * (options_priv.h). */
#include "options_priv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "store_time.h"
#include "text.h"

int options_bad(char *err, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

const char *options_shown(const char *text, char *buf, size_t size)
{
	text_escape(buf, size, text);
	return buf;
}

int options_parse_output(struct options *o, const char *arg, char *err, size_t size)
{
	if (!*arg || !strcmp(arg, "-"))
		return options_bad(err, size, "--output '%s': no file: give the one to write", arg);
	o->output = arg;
	return 0;
}

int options_parse_for(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];

	if (!options_number(arg, 0.1, 3600, &o->for_s))
		return options_bad(err, size, "--for '%s': not a time: give 0.1 to 3600 seconds",
				   options_shown(arg, buf, sizeof(buf)));
	return 0;
}

int options_parse_keep(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[60];

	if (!store_keep_parse(arg, &o->keep))
		return options_bad(
			err, size,
			"--keep '%s': not a list of tiers: give up to %d, each coarser and for "
			"longer than the one before, as in 1s:1h,10s:24h,60s:7d",
			options_shown(arg, buf, sizeof(buf)), STORE_TIERS);
	return 0;
}

int options_parse_max_size(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];

	if (!store_size_parse(arg, &o->keep.max_bytes))
		return options_bad(err, size,
				   "--max-size '%s': not a size: give 1M or more, as in 500M or 2G",
				   options_shown(arg, buf, sizeof(buf)));
	return 0;
}

int options_parse_anonymize(struct options *o, const char *arg, char *err, size_t size)
{
	(void)arg;
	(void)err;
	(void)size;
	o->anonymize = true;
	return 0;
}

int options_parse_perf(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];

	if (!store_duration_parse(arg, strlen(arg), &o->perf_ns) || o->perf_ns < NS_PER_S / 10 ||
	    o->perf_ns > 3600 * NS_PER_S)
		return options_bad(err, size,
				   "--perf '%s': not a length of time: give 1s to 1h, as in 10s",
				   options_shown(arg, buf, sizeof(buf)));
	return 0;
}

int options_parse_rows(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];
	size_t n = strspn(arg, "0123456789");

	if (!n || arg[n] || n > 6)
		return options_bad(err, size, "--rows '%s': not a number: give 1 or more, or 0",
				   options_shown(arg, buf, sizeof(buf)));
	o->rows = (unsigned)strtoul(arg, NULL, 10);
	return 0;
}

int options_parse_at(struct options *o, const char *arg, char *err, size_t size)
{
	(void)err;
	(void)size;
	o->at = arg; /* relative to the recording's end, which is not known yet */
	return 0;
}

int options_parse_slow(struct options *o, const char *arg, char *err, size_t size)
{
	char buf[40];

	if (!text_parse_ns(arg, SLOW_LEAST_NS, SLOW_MOST_NS, &o->slow_ns))
		return options_bad(err, size,
				   "--slow '%s': not a time: give 1us to 60s, as in 500us or 2ms",
				   options_shown(arg, buf, sizeof(buf)));
	return 0;
}
