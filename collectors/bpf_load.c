// SPDX-License-Identifier: GPL-2.0-only
/* Loading and attaching programs in the kernel; see bpf_load.h. */
#ifdef KVMTOP_BPF

#include "bpf_load.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kvm_access.h"

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

int bpf_load_open(const char *image, size_t size, const char *name, struct bpf_object **out)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = name);

	libbpf_set_print(silent); /* its warnings would write into the screen */
	*out = bpf_object__open_mem(image, size, &opts);
	return *out ? 0 : -errno;
}

int bpf_load_config(struct bpf_object *o, const void *config, size_t size)
{
	struct bpf_map *m = bpf_object__find_map_by_name(o, ".rodata.config");

	return m ? bpf_map__set_initial_value(m, config, size) : -ENOENT;
}

int bpf_load_sizes(struct bpf_object *o, const struct bpf_size *size, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct bpf_map *m = bpf_object__find_map_by_name(o, size[i].map);
		int rc = m ? bpf_map__set_max_entries(m, size[i].entries) : -ENOENT;

		if (rc)
			return rc;
	}
	return 0;
}

void *bpf_memory_map(struct bpf_memory *m, struct bpf_object *o, const char *map, size_t entry,
		     uint32_t n)
{
	struct bpf_map *of = bpf_object__find_map_by_name(o, map);
	size_t len = entry * n;
	void *at;

	if (!of || bpf_map__value_size(of) != entry || m->n == BPF_MAPPINGS)
		return NULL;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(of), 0);
	if (at == MAP_FAILED)
		return NULL;
	m->map[m->n].at = at;
	m->map[m->n++].len = len;
	return at;
}

void bpf_memory_unmap(struct bpf_memory *m)
{
	while (m->n) {
		m->n--;
		munmap(m->map[m->n].at, m->map[m->n].len);
	}
}

/*
 * No sampling: the event is there for the program's sake only. The program runs on all CPUs whether
 * the event is enabled or not, which on its own CPU would be counted after it each time.
 */
int bpf_load_attach(struct bpf_object *o, const char *program, uint64_t id, int cpu,
		    struct bpf_link **out)
{
	struct bpf_program *p = bpf_object__find_program_by_name(o, program);
	struct perf_event_attr a = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(a),
		.config = id,
	};
	int fd, rc;

	if (!p)
		return -ENOENT;
	fd = (int)syscall(SYS_perf_event_open, &a, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*out = bpf_program__attach_perf_event(p, fd);
	if (*out) {
		(void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		return 0;
	}
	rc = errno ? -errno : -EINVAL;
	close(fd);
	return rc;
}

int bpf_load_cpu(const struct sysroot *root)
{
	int *cpu, n = kvm_online_cpus(root, &cpu), first = n > 0 ? cpu[0] : n < 0 ? n : -ENODEV;

	free(cpu);
	return first;
}

#endif
