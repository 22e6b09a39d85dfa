// SPDX-License-Identifier: GPL-2.0-only
/* CPU topology; see host_topology.h. */
#include "host_topology.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hoststat.h"

static int number_in(const struct sysroot *root, int cpu, const char *file)
{
	char buf[32], *end;
	ssize_t n = sysroot_readf(root, buf, sizeof(buf),
				  "sys/devices/system/cpu/cpu%d/topology/%s", cpu, file);
	long v;

	if (n <= 0)
		return -1;
	v = strtol(buf, &end, 10);
	return end > buf && v >= 0 && v < 1 << 20 ? (int)v : -1;
}

struct sibling {
	int self, found;
};

static void note_sibling(void *ctx, int cpu)
{
	struct sibling *s = ctx;

	if (cpu != s->self && s->found < 0)
		s->found = cpu;
}

static int sibling_of(const struct sysroot *root, int cpu)
{
	struct sibling s = {.self = cpu, .found = -1};
	char buf[256];
	ssize_t n =
		sysroot_readf(root, buf, sizeof(buf),
			      "sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);

	if (n > 0)
		hoststat_cpulist(buf, (size_t)n, 1 << 20, note_sibling, &s);
	return s.found;
}

/* The CPU's folder has a link "node<N>". */
static int node_of(const struct sysroot *root, int cpu)
{
	char path[64];
	struct dirent *e;
	int node = -1;
	DIR *d;

	snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d", cpu);
	d = sysroot_opendir(root, path);
	if (!d)
		return -1;
	while (node < 0 && (e = readdir(d)))
		if (!strncmp(e->d_name, "node", 4) && e->d_name[4] >= '0' && e->d_name[4] <= '9')
			node = atoi(e->d_name + 4);
	closedir(d);
	return node;
}

void topology_of(const struct sysroot *root, struct cpu_reading *c)
{
	c->core = number_in(root, c->cpu, "core_id");
	c->package = number_in(root, c->cpu, "physical_package_id");
	c->sibling = sibling_of(root, c->cpu);
	c->node = node_of(root, c->cpu);
}
