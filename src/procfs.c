// SPDX-License-Identifier: GPL-2.0-only
/* Parsers of the small files of /proc and of KVM's names. */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "decimal.h"
#include "procfs.h"

/* Above this no host has CPUs; old kernels printed garbage for a dead task. */
#define MAX_CPU 65536

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t';
}

/* One number of a blank-separated line. Negative ones are allowed, and read as they wrap. */
static bool take_field(const char **p, const char *end, uint64_t *out)
{
	bool negative;

	while (*p < end && is_blank(**p))
		(*p)++;
	negative = *p < end && **p == '-';
	if (negative)
		(*p)++;
	if (!decimal_take(p, end, out) || (*p < end && !is_blank(**p)))
		return false;
	if (negative)
		*out = -*out;
	return true;
}

static int sane_cpu(uint64_t v)
{
	return v < MAX_CPU ? (int)v : -1;
}

static void store_field(struct proc_stat *out, unsigned nr, uint64_t v)
{
	switch (nr) {
	case 4:
		out->ppid = (pid_t)v;
		break;
	case 9:
		out->flags = (unsigned)v;
		break;
	case 10:
		out->minflt = v;
		break;
	case 12:
		out->majflt = v;
		break;
	case 14:
		out->utime = v;
		break;
	case 15:
		out->stime = v;
		break;
	case 20:
		out->num_threads = v > LONG_MAX ? 0 : (long)v;
		break;
	case PROC_STAT_START:
		out->start = v;
		break;
	case PROC_STAT_CPU:
		out->cpu = sane_cpu(v);
		break;
	case PROC_STAT_BLKIO:
		out->blkio_ticks = v;
		break;
	case PROC_STAT_GTIME:
		out->gtime = v;
		break;
	case PROC_STAT_GSTIME:
		out->gstime = v;
		break;
	default:
		break;
	}
}

/* comm may hold brackets itself: it reaches from the first '(' to the last ')'. */
static const char *take_comm(const char *p, const char *end, char *comm, size_t size)
{
	const char *close = memrchr(p, ')', (size_t)(end - p));
	size_t n;

	if (p >= end || *p != '(' || !close)
		return NULL;
	n = (size_t)(close - p - 1);
	if (n >= size)
		n = size - 1;
	memcpy(comm, p + 1, n);
	comm[n] = '\0';
	return close + 1;
}

int procfs_parse_stat(const char *buf, size_t len, struct proc_stat *out)
{
	const char *p = buf, *end = buf + len;
	uint64_t v;

	memset(out, 0, sizeof(*out));
	out->cpu = -1;
	if (!decimal_take(&p, end, &v) || v > INT_MAX || p == end || *p++ != ' ')
		return -EBADMSG;
	out->pid = (pid_t)v;
	p = take_comm(p, end, out->comm, sizeof(out->comm));
	if (!p || end - p < 2 || p[0] != ' ' || is_blank(p[1]))
		return -EBADMSG;
	out->state = p[1];
	p += 2;
	out->nfields = 3;
	/* A field that is no number ends the known ones: what follows cannot be counted. */
	while (take_field(&p, end, &v))
		store_field(out, ++out->nfields, v);
	return 0;
}

int procfs_parse_schedstat(const char *buf, size_t len, struct proc_schedstat *out)
{
	const char *p = buf, *end = buf + len;

	memset(out, 0, sizeof(*out));
	if (take_field(&p, end, &out->run_ns) && take_field(&p, end, &out->delay_ns) &&
	    take_field(&p, end, &out->nr_sched))
		return 0;
	return -EBADMSG;
}

/* "cpu" is one of "cpu,cpuacct"; the v2 line has an empty list. */
static bool lists_controller(const char *list, size_t len, const char *controller)
{
	size_t want;

	if (!controller)
		return !len;
	want = strlen(controller);
	while (len) {
		const char *comma = memchr(list, ',', len);
		size_t n = comma ? (size_t)(comma - list) : len;

		if (n == want && !memcmp(list, controller, n))
			return true;
		n += comma ? 1 : 0;
		list += n;
		len -= n;
	}
	return false;
}

static ssize_t copy_path(const char *path, size_t n, char *out, size_t size)
{
	static const char deleted[] = " (deleted)";
	const size_t tail = sizeof(deleted) - 1;

	if (n > tail && !memcmp(path + n - tail, deleted, tail))
		n -= tail;
	if (n >= size)
		return -ENAMETOOLONG;
	memcpy(out, path, n);
	out[n] = '\0';
	return (ssize_t)n;
}

ssize_t procfs_parse_cgroup(const char *buf, size_t len, const char *controller, char *out,
			    size_t size)
{
	const char *p = buf, *end = buf + len;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *eol = nl ? nl : end;
		const char *list = memchr(p, ':', (size_t)(eol - p));
		const char *path = NULL;

		if (list)
			path = memchr(list + 1, ':', (size_t)(eol - list - 1));
		if (path && path[0] == ':' && path + 1 < eol && path[1] == '/' &&
		    lists_controller(list + 1, (size_t)(path - list - 1), controller))
			return copy_path(path + 1, (size_t)(eol - path - 1), out, size);
		p = nl ? nl + 1 : end;
	}
	return -ENOENT;
}

int procfs_parse_id(const char *s, int *out)
{
	const char *p = s, *end = s + strlen(s);
	uint64_t v;

	if (!decimal_take(&p, end, &v) || p != end || v > INT_MAX)
		return -EBADMSG;
	*out = (int)v;
	return 0;
}

int procfs_parse_kvm_dir(const char *name, pid_t *id, int *fd)
{
	const char *p = name, *end = name + strlen(name);
	uint64_t v;

	if (!decimal_take(&p, end, &v) || !v || v > INT_MAX || *p != '-')
		return -EBADMSG;
	*id = (pid_t)v;
	return procfs_parse_id(p + 1, fd);
}

int procfs_parse_vcpu_dir(const char *name, int *kvm_id)
{
	if (strncmp(name, "vcpu", 4) != 0)
		return -EBADMSG;
	return procfs_parse_id(name + 4, kvm_id);
}

enum kvm_link procfs_parse_kvm_link(const char *link, int *kvm_id)
{
	static const char anon[] = "anon_inode:";

	*kvm_id = -1;
	if (!strcmp(link, "/dev/kvm"))
		return KVM_LINK_DEV;
	if (strncmp(link, anon, sizeof(anon) - 1) != 0)
		return KVM_LINK_NONE;
	link += sizeof(anon) - 1;
	if (!strcmp(link, "kvm-vm"))
		return KVM_LINK_VM;
	if (!strcmp(link, "kvm-vcpu")) /* before 4.19 without its number */
		return KVM_LINK_VCPU;
	if (!strncmp(link, "kvm-vcpu:", 9) && !procfs_parse_id(link + 9, kvm_id))
		return KVM_LINK_VCPU;
	return KVM_LINK_NONE;
}
