// SPDX-License-Identifier: GPL-2.0-only
/* Pins and NUMA nodes of vCPU threads; see sched_place.h. */
#include "sched_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inventory.h"
#include "procfs.h"
#include "sysroot.h"

#define MAX_NODES 64
#define MAPS_MAX (256u << 10) /* of a VM's numa_maps: its memory is in few, long areas */

/* Cpus_allowed_list of the thread into buf; NULL: not known. */
static const char *pin_of(const struct collector_env *env, const struct inv_thread *t, char *buf,
			  size_t size)
{
	static const char key[] = "\nCpus_allowed_list:\t";
	ssize_t n = sysroot_readf(env->root, buf, size, "proc/%d/task/%d/status", t->pid, t->tid);
	char *p = n > 0 ? strstr(buf, key) : NULL;

	if (!p)
		return NULL;
	p += sizeof(key) - 1;
	p[strcspn(p, "\n")] = 0;
	return p;
}

static int node_of_cpu(const struct collector_env *env, int cpu)
{
	for (int n = 0; n < MAX_NODES; n++) {
		char path[80];
		int fd;

		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%d/node%d", cpu, n);
		fd = sysroot_openat(env->root, path, O_PATH | O_CLOEXEC);
		if (fd >= 0) {
			close(fd);
			return n;
		}
	}
	return -1;
}

/* "… N0=1234 N1=5 kernelpagesize_kB=4": adds pages times page size a node. */
static void add_area(const char *line, uint64_t *kb)
{
	const char *size = strstr(line, "kernelpagesize_kB=");
	uint64_t page = size ? strtoull(size + strlen("kernelpagesize_kB="), NULL, 10) : 4;

	for (const char *p = strstr(line, " N"); p; p = strstr(p + 1, " N")) {
		char *end;
		unsigned long node = strtoul(p + 2, &end, 10);

		if (end > p + 2 && *end == '=' && node < MAX_NODES)
			kb[node] += strtoull(end + 1, NULL, 10) * page;
	}
}

/* The node that holds most of the process's memory; -1: not known. */
static int node_of_memory(const struct collector_env *env, pid_t pid)
{
	uint64_t kb[MAX_NODES] = {0};
	char *buf = malloc(MAPS_MAX), *save = NULL;
	ssize_t n;
	int best = -1;

	if (!buf)
		return -1;
	n = sysroot_readf(env->root, buf, MAPS_MAX, "proc/%d/numa_maps", pid);
	if (n > 0 || n == -EFBIG)
		for (char *l = strtok_r(buf, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
			add_area(l, kb);
	for (int i = 0; i < MAX_NODES; i++)
		if (kb[i] && (best < 0 || kb[i] > kb[best]))
			best = i;
	free(buf);
	return best;
}

/* only: the one node there is, -1: several (or none). */
static const char *node_text(const struct collector_env *env, const struct inv_thread *t, int only,
			     int memory, char *text, size_t size)
{
	char buf[1024];
	struct proc_stat st;
	ssize_t n;
	int node;

	if (only >= 0) {
		snprintf(text, size, "%d", only);
		return text;
	}
	n = sysroot_readf(env->root, buf, sizeof(buf), "proc/%d/task/%d/stat", t->pid, t->tid);
	if (n < 0 || procfs_parse_stat(buf, (size_t)n, &st) < 0 || st.cpu < 0)
		return NULL;
	node = node_of_cpu(env, st.cpu);
	if (node < 0)
		return NULL;
	if (memory >= 0 && memory != node)
		snprintf(text, size, "%d!%d", node, memory);
	else
		snprintf(text, size, "%d", node);
	return text;
}

static void push_place(const struct collector_env *env, struct inv_thread *t, int only, int memory)
{
	char status[4096], node[32];
	struct place_reading r = {
		.thread = t,
		.pin = pin_of(env, t, status, sizeof(status)),
		.node = node_text(env, t, only, memory, node, sizeof(node)),
	};

	env->sink->place(env->sink->ctx, &r);
}

static bool has_nodes(const struct collector_env *env)
{
	int fd = sysroot_openat(env->root, "sys/devices/system/node/node1", O_PATH | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void sched_places(const struct collector_env *env, const struct inv_vm *vm)
{
	/* With one node all memory is on it: nothing to walk for. */
	bool nodes = has_nodes(env);
	int memory = nodes ? node_of_memory(env, vm->pid) : -1;
	int only = nodes ? -1 : node_of_cpu(env, 0);

	for (struct inv_thread *t = vm->threads; t; t = t->next)
		if (t->role == ROLE_VCPU && !(t->flags & INV_GONE))
			push_place(env, t, only, memory);
}
