// SPDX-License-Identifier: GPL-2.0-only
/* Parsers of the CPU controller's files; see cgroup.h. */
#include "cgroup.h"

#include <errno.h>
#include <string.h>

#include "decimal.h"

static bool value_of(const char *buf, size_t len, const char *key, uint64_t *out)
{
	const char *end, *p = decimal_line(buf, len, key, ' ', &end);

	return p && decimal_take(&p, end, out);
}

int cgroup_parse_throttled(const char *buf, size_t len, struct cgroup_throttled *out)
{
	uint64_t us;

	if (!value_of(buf, len, "nr_periods", &out->periods))
		out->periods = 0;
	if (!value_of(buf, len, "nr_throttled", &out->used_up))
		out->used_up = 0;
	if (value_of(buf, len, "throttled_time", &out->ns))
		return 0;
	if (!value_of(buf, len, "throttled_usec", &us))
		return -EBADMSG;
	out->ns = us > UINT64_MAX / 1000 ? UINT64_MAX : us * 1000;
	return 0;
}

int cgroup_parse_max(const char *buf, size_t len, uint64_t *quota_us, uint64_t *period_us)
{
	const char *p = buf, *end = buf + len;

	if (len >= 4 && !memcmp(buf, "max ", 4)) {
		*quota_us = 0;
		p += 3;
	} else if (!decimal_take(&p, end, quota_us)) {
		return -EBADMSG;
	}
	if (p >= end || *p++ != ' ' || !decimal_take(&p, end, period_us))
		return -EBADMSG;
	return 0;
}

int cgroup_parse_number(const char *buf, size_t len, uint64_t *us)
{
	if (len && buf[0] == '-') {
		*us = 0;
		return 0;
	}
	return decimal_take(&buf, buf + len, us) ? 0 : -EBADMSG;
}

static bool ends_in_scope(const char *path, size_t len)
{
	return len > 6 && !memcmp(path + len - 6, ".scope", 6);
}

size_t cgroup_parent(const char *path, size_t len)
{
	if (ends_in_scope(path, len))
		return 0;
	while (len > 0 && path[len - 1] != '/')
		len--;
	return len > 1 ? len - 1 : 0;
}
