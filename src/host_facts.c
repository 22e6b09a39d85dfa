// SPDX-License-Identifier: GPL-2.0-only
/* What a host is (host_facts.h). */
#include "host_facts.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sysroot.h"

/* Files of one line each. */
static const struct {
	const char *name, *path;
} single[] = {
	{"node", "proc/sys/kernel/hostname"},
	{"kernel", "proc/sys/kernel/osrelease"},
	{"kernel.version", "proc/sys/kernel/version"},
	{"boot_id", "proc/sys/kernel/random/boot_id"},
	{"cmdline", "proc/cmdline"},
	{"cpu.online", "sys/devices/system/cpu/online"},
	{"smt.active", "sys/devices/system/cpu/smt/active"},
	{"smt.control", "sys/devices/system/cpu/smt/control"},
	{"numa.online", "sys/devices/system/node/online"},
	{"numa.balancing", "proc/sys/kernel/numa_balancing"},
	{"clocksource", "sys/devices/system/clocksource/clocksource0/current_clocksource"},
	{"hugepages", "sys/kernel/mm/transparent_hugepage/enabled"},
	{"ksm", "sys/kernel/mm/ksm/run"},
	{"cpufreq.governor", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"},
};

/* Where the name is, or where it would go. */
static size_t place_of(const struct host_facts *f, const char *name, bool *there)
{
	size_t low = 0, high = f->n;

	*there = false;
	while (low < high) {
		size_t mid = (low + high) / 2;
		int c = strcmp(f->fact[mid].name, name);

		if (!c) {
			*there = true;
			return mid;
		}
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int host_facts_add(struct host_facts *f, const char *name, const char *value)
{
	bool there;
	size_t at = place_of(f, name, &there);
	struct host_fact one = {.value = strndup(value, HOST_FACT_BYTES)}, *more;

	if (!there && f->n >= HOST_FACTS_MOST) {
		free(one.value);
		return -E2BIG;
	}
	if (there && one.value) {
		free(f->fact[at].value);
		f->fact[at].value = one.value;
		return 0;
	}
	one.name = strndup(name, HOST_FACT_BYTES);
	more = one.name && one.value ? reallocarray(f->fact, f->n + 1, sizeof(*more)) : NULL;
	if (!more) {
		free(one.name);
		free(one.value);
		return -ENOMEM;
	}
	f->fact = more;
	memmove(&more[at + 1], &more[at], (f->n - at) * sizeof(*more));
	more[at] = one;
	f->n++;
	return 0;
}

void host_facts_free(struct host_facts *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->fact[i].name);
		free(f->fact[i].value);
	}
	free(f->fact);
	*f = (struct host_facts){0};
}

const char *host_facts_get(const struct host_facts *f, const char *name)
{
	bool there;
	size_t at = place_of(f, name, &there);

	return there ? f->fact[at].value : NULL;
}

bool host_facts_equal(const struct host_facts *a, const struct host_facts *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->fact[i].name, b->fact[i].name) != 0 ||
		    strcmp(a->fact[i].value, b->fact[i].value) != 0)
			return false;
	return true;
}

/* A file's first line as a fact; what cannot be read is not known. */
static int add_file(const struct sysroot *r, const char *path, const char *name,
		    struct host_facts *f)
{
	char text[HOST_FACT_BYTES];
	ssize_t n = sysroot_read(r, path, text, sizeof(text));

	if (n < 0 && n != -EFBIG)
		return 0;
	text[strcspn(text, "\n")] = '\0';
	return host_facts_add(f, name, text);
}

/* Each file of a folder, as PREFIX.FILE. */
static int add_folder(const struct sysroot *r, const char *folder, const char *prefix,
		      struct host_facts *f)
{
	DIR *d = sysroot_opendir(r, folder);
	struct dirent *e;
	char path[800], name[600];
	int rc = 0;

	while (d && !rc && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		snprintf(name, sizeof(name), "%s.%s", prefix, e->d_name);
		rc = add_file(r, path, name, f);
	}
	if (d)
		closedir(d);
	return rc;
}

static int add_modules(const struct sysroot *r, struct host_facts *f)
{
	DIR *d = sysroot_opendir(r, "sys/module");
	struct dirent *e;
	char path[400];
	int rc = 0;

	while (d && !rc && (e = readdir(d)) != NULL) {
		if (strncmp(e->d_name, "kvm", 3) != 0)
			continue;
		snprintf(path, sizeof(path), "sys/module/%s/parameters", e->d_name);
		rc = add_folder(r, path, e->d_name, f);
	}
	if (d)
		closedir(d);
	return rc;
}

static int add_cpu(const struct sysroot *r, struct host_facts *f)
{
	static const struct {
		const char *key, *name;
	} wanted[] = {{"model name", "cpu.model"}, {"microcode", "cpu.microcode"}};
	char text[4096], *line, *rest = text;
	ssize_t n = sysroot_read(r, "proc/cpuinfo", text, sizeof(text));
	int rc = 0;

	if (n < 0 && n != -EFBIG)
		return 0;
	/* The first CPU's stand for all. */
	while (!rc && (line = strsep(&rest, "\n")) != NULL && *line) {
		char *value = strstr(line, ": ");

		for (size_t i = 0; value && !rc && i < sizeof(wanted) / sizeof(wanted[0]); i++)
			if (strncmp(line, wanted[i].key, strlen(wanted[i].key)) == 0)
				rc = host_facts_add(f, wanted[i].name, value + 2);
	}
	return rc;
}

int host_facts_read(const struct sysroot *r, struct host_facts *out)
{
	int rc = 0;

	*out = (struct host_facts){0};
	for (size_t i = 0; i < sizeof(single) / sizeof(single[0]) && !rc; i++)
		rc = add_file(r, single[i].path, single[i].name, out);
	if (!rc)
		rc = add_cpu(r, out);
	if (!rc)
		rc = add_folder(r, "sys/devices/system/cpu/vulnerabilities", "mitigation", out);
	if (!rc)
		rc = add_modules(r, out);
	if (rc)
		host_facts_free(out);
	return rc == -E2BIG ? 0 : rc;
}
