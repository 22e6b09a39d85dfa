// SPDX-License-Identifier: GPL-2.0-only
/*
 * Versions of VMM programs (host_facts.h).
 *
 * Asking a program for its version would run it. QEMU has the line that --version prints among its
 * read-only data, so the file that the process runs is looked through instead: once for each file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host_facts.h"
#include "sysroot.h"

#define VERSION_BYTES 120
#define CHUNK (256 << 10)
#define FILE_MOST (256 << 20) /* a program is not larger; the file is another's choice */
#define FILES_MOST 64

static const char before[] = "QEMU emulator version ";

struct vmm_file {
	dev_t dev;
	ino_t ino;
	struct timespec changed;
	char version[VERSION_BYTES]; /* "" not known */
};

struct vmm_versions {
	struct vmm_file file[FILES_MOST];
	size_t n;
};

struct vmm_versions *vmm_versions_new(void)
{
	return calloc(1, sizeof(struct vmm_versions));
}

void vmm_versions_free(struct vmm_versions *v)
{
	free(v);
}

/* The version that stands behind `before` in these bytes, if it ends in them. */
static bool find_in(const char *text, size_t n, char *version)
{
	const char *at = memmem(text, n, before, sizeof(before) - 1);
	size_t left, len = 0;

	if (!at)
		return false;
	at += sizeof(before) - 1;
	left = n - (size_t)(at - text);
	while (len < left && len < VERSION_BYTES - 1 && at[len] >= ' ' && at[len] <= '~')
		len++;
	if (!len)
		return false;
	memcpy(version, at, len);
	version[len] = '\0';
	return true;
}

static void look_through(int fd, char *version)
{
	const size_t overlap = sizeof(before) + VERSION_BYTES;
	char *chunk = malloc(CHUNK);

	for (off_t at = 0; chunk && at < FILE_MOST;) {
		ssize_t n = pread(fd, chunk, CHUNK, at);

		if (n <= 0 || find_in(chunk, (size_t)n, version) || n < CHUNK)
			break;
		at += n - (ssize_t)overlap; /* it may lie across the border */
	}
	free(chunk);
}

/* NULL: not known. */
static const struct vmm_file *file_of(struct vmm_versions *v, int fd)
{
	struct vmm_file *f = v->file;
	struct stat sb;

	if (fstat(fd, &sb) || !S_ISREG(sb.st_mode))
		return NULL;
	for (size_t i = 0; i < v->n; i++, f++)
		if (f->dev == sb.st_dev && f->ino == sb.st_ino &&
		    f->changed.tv_sec == sb.st_mtim.tv_sec &&
		    f->changed.tv_nsec == sb.st_mtim.tv_nsec)
			return f;
	if (v->n == FILES_MOST)
		return NULL;
	*f = (struct vmm_file){.dev = sb.st_dev, .ino = sb.st_ino, .changed = sb.st_mtim};
	v->n++;
	look_through(fd, f->version);
	return f;
}

/* Is it among those of the list already? */
static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = strstr(list, word); p; p = strstr(p + 1, word))
		if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ';'))
			return true;
	return false;
}

int vmm_versions_add(struct vmm_versions *v, const struct sysroot *r, pid_t pid, const char *name,
		     struct host_facts *f)
{
	char path[64], fact[100], both[HOST_FACT_BYTES];
	const struct vmm_file *file;
	const char *known;
	int fd;

	snprintf(path, sizeof(path), "proc/%d/exe", (int)pid);
	fd = sysroot_openat(r, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	file = file_of(v, fd);
	close(fd);
	if (!file || !file->version[0])
		return 0;
	snprintf(fact, sizeof(fact), "vmm.%s", name);
	known = host_facts_get(f, fact);
	if (!known)
		return host_facts_add(f, fact, file->version);
	if (has_word(known, file->version))
		return 0;
	/* In the order of the text, not of the VMs: else they would seem to change. */
	if (strcmp(known, file->version) < 0)
		snprintf(both, sizeof(both), "%s; %s", known, file->version);
	else
		snprintf(both, sizeof(both), "%s; %s", file->version, known);
	return host_facts_add(f, fact, both);
}
