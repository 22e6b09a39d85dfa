// SPDX-License-Identifier: GPL-2.0-only
/* What the command line and files of offsets say of a guest (merge.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge.h"
#include "text.h"

#define VCPU_MAX 65535

static int bad(struct merge *m, const char *option, const char *arg, const char *mend)
{
	char shown[100];

	text_escape(shown, sizeof(shown), arg);
	snprintf(m->why, sizeof(m->why), "%s '%s': %s", option, shown, mend);
	return -EINVAL;
}

/* A decimal number up to `most` at the beginning of text; its length, 0: none. */
static size_t small_number(const char *text, unsigned long most, unsigned *out)
{
	size_t n = strspn(text, "0123456789");
	unsigned long v = n && n < 10 ? strtoul(text, NULL, 10) : most + 1;

	if (v > most)
		return 0;
	*out = (unsigned)v;
	return n;
}

/* "vcpuN:" or "vcpuN " before a value; without it, all. NULL: it is wrong. */
static const char *which_vcpu(const char *arg, char end, int *vcpu)
{
	unsigned v;
	size_t n;

	*vcpu = MERGE_ALL_VCPUS;
	if (strncmp(arg, "vcpu", 4) != 0)
		return arg;
	n = small_number(arg + 4, VCPU_MAX, &v);
	if (!n || arg[4 + n] != end)
		return NULL;
	*vcpu = (int)v;
	return arg + 4 + n + 1;
}

int merge_add_given(struct merge_input *g, const struct merge_given *one)
{
	struct merge_given *more = reallocarray(g->given, g->ngiven + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	g->given = more;
	more[g->ngiven++] = *one;
	return 0;
}

int merge_add_offset(struct merge *m, struct merge_input *guest, const char *arg)
{
	struct merge_given one = {0};
	const char *value = which_vcpu(arg, ':', &one.vcpu);

	if (!value || tsc_parse_offset(value, strlen(value), &one.offset) < 0)
		return bad(m, "--offset", arg,
			   "no offset: give a number of cycles, signed or modulo 2^64, or "
			   "vcpuN:NUMBER "
			   "for one vCPU");
	return merge_add_given(guest, &one);
}

/* "RATIO:BITS", or with a blank between. */
static bool parse_scale(const char *text, char between, struct tsc_scale *s)
{
	const char *p = strchr(text, between);

	return p && tsc_parse_offset(text, (size_t)(p - text), &s->ratio) == 0 && s->ratio &&
	       *text != '-' && small_number(p + 1, TSC_FRAC_MAX, &s->frac_bits) == strlen(p + 1);
}

int merge_add_scaling(struct merge *m, struct merge_input *guest, const char *arg)
{
	struct merge_given one = {.is_scale = true};
	const char *value = which_vcpu(arg, ':', &one.vcpu);

	if (!value || !parse_scale(value, ':', &one.scale))
		return bad(m, "--scaling", arg,
			   "no scaling: give RATIO:BITS, as the files tsc-scaling-ratio and "
			   "tsc-scaling-ratio-frac-bits of the vCPU have them");
	return merge_add_given(guest, &one);
}

int merge_add_map(struct merge *m, struct merge_input *guest, const char *arg)
{
	struct merge_map *more, one;
	size_t n = small_number(arg, TRACETEXT_CPUS - 1, &one.cpu);

	if (!n || arg[n] != '=' || !arg[n + 1] ||
	    small_number(arg + n + 1, VCPU_MAX, &one.vcpu) != strlen(arg + n + 1))
		return bad(m, "--map", arg,
			   "no pair of CPUs: give GUEST=VCPU, as in 2=4: the guest's CPU 2 is the "
			   "vCPU "
			   "whose id in KVM is 4");
	more = reallocarray(guest->map, guest->nmaps + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	guest->map = more;
	more[guest->nmaps++] = one;
	return 0;
}

/* --- a file of offsets --- */

/* Cuts "[VM] vcpuN OFFSET [RATIO BITS]"; the VM's name may have blanks. false: it is none. */
static bool parse_row(char *line, const char **name, struct merge_given *offset,
		      struct merge_given *scale)
{
	char *at = strncmp(line, "vcpu", 4) == 0 ? line : strstr(line, " vcpu"), *end;
	const char *value;

	*name = at == line ? NULL : line;
	if (!at)
		return false;
	if (at != line)
		*at++ = '\0';
	value = which_vcpu(at, ' ', &offset->vcpu);
	if (!value || offset->vcpu < 0)
		return false;
	value += strspn(value, " ");
	end = at + (value - at) + strcspn(value, " ");
	if (tsc_parse_offset(value, (size_t)(end - value), &offset->offset) < 0)
		return false;
	end += strspn(end, " ");
	*scale = (struct merge_given){.vcpu = offset->vcpu, .is_scale = true};
	return !*end || parse_scale(end, ' ', &scale->scale);
}

static int give(struct merge_input *guest, const struct merge_given *offset,
		const struct merge_given *scale)
{
	int rc = merge_add_given(guest, offset);

	return rc || !scale->scale.ratio ? rc : merge_add_given(guest, scale);
}

/* 1: a row of a table; 0: a comment or blank; -EINVAL: something else; -ENOMEM. */
static int take_row(struct merge_input *guest, size_t nguests, char *line)
{
	struct merge_given offset = {0}, scale;
	const char *name;
	int rc = 0;

	for (char *p = line; *p; p++)
		if (*p == '\t')
			*p = ' ';
	for (size_t n = strlen(line); n && strchr(" \r\n", line[n - 1]);)
		line[--n] = '\0';
	line += strspn(line, " ");
	if (!*line || *line == '#')
		return 0;
	if (!parse_row(line, &name, &offset, &scale))
		return -EINVAL;
	for (size_t i = 0; i < nguests && !rc; i++)
		if (!name || strcmp(name, guest[i].name) == 0)
			rc = give(&guest[i], &offset, &scale);
	return rc ? rc : 1;
}

/* All rows of a table. -EINVAL: it is none; *table: but it began as one. */
static int take_rows(int fd, struct merge_input *guest, size_t nguests, bool *table)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3), rc = 0;
	FILE *f = copy < 0 ? NULL : fdopen(copy, "r");
	char line[512];

	*table = false;
	if (!f) {
		rc = -errno;
		if (copy >= 0)
			close(copy);
		return rc;
	}
	rewind(f); /* a copy of a pipe is at its end */
	while (rc >= 0 && fgets(line, sizeof(line), f)) {
		rc = take_row(guest, nguests, line);
		*table |= rc > 0;
	}
	if (ferror(f))
		rc = -errno;
	fclose(f);
	return rc < 0 ? rc : 0;
}

int merge_add_tsc_file(struct merge *m, struct merge_input *guest, size_t nguests, const char *path,
		       struct merge_found *found)
{
	struct merge_input in = {.path = path, .fd = -1};
	bool table = false;
	int rc = merge_input_file(m, &in);

	if (!rc) {
		rc = take_rows(in.fd, guest, nguests, &table);
		if (rc == -EINVAL && table)
			bad(m, "--tsc", path, "a line is not: [VM] vcpuN OFFSET [RATIO FRAC_BITS]");
		else if (rc == -EINVAL)
			rc = merge_input_read(m, &in, found);
		else if (rc && rc != -ENOMEM)
			bad(m, "--tsc", path, strerror(-rc));
	}
	if (in.fd >= 0)
		close(in.fd);
	return rc;
}
