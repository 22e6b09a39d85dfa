// SPDX-License-Identifier: GPL-2.0-only
/* Writing of a .tar.gz (tar.h): POSIX's ustar, through zlib. */
#include "tar.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK 512
#define SIZE_MOST ((int64_t)8 << 30) /* eleven octal digits */

struct tar {
	gzFile gz;
	int64_t mtime;
	int rc;
};

/* The fields of a header, as they lie in the file. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

struct tar *tar_new(int fd, int64_t mtime)
{
	struct tar *t = calloc(1, sizeof(*t));
	int own = dup(fd);

	if (!t || own < 0) {
		free(t);
		if (own >= 0)
			close(own);
		return NULL;
	}
	t->mtime = mtime;
	t->gz = gzdopen(own, "wb");
	if (t->gz)
		return t;
	close(own);
	free(t);
	return NULL;
}

void tar_free(struct tar *t)
{
	if (!t)
		return;
	if (t->gz)
		gzclose(t->gz);
	free(t);
}

static void put(struct tar *t, const void *data, size_t n)
{
	if (t->rc || !n)
		return;
	errno = 0;
	if (gzwrite(t->gz, data, (unsigned)n) != (int)n)
		t->rc = errno ? -errno : -EIO;
}

/* Files end on a whole block. */
static void put_padding(struct tar *t, int64_t n)
{
	static const char zero[BLOCK];

	put(t, zero, (size_t)(-n & (BLOCK - 1)));
}

static void put_header(struct tar *t, const char *name, int64_t size)
{
	struct header h = {.type = '0', .magic = "ustar", .version = {'0', '0'}};
	const unsigned char *byte = (const unsigned char *)&h;
	unsigned sum = 0;

	if (strlen(name) >= sizeof(h.name))
		t->rc = t->rc ? t->rc : -ENAMETOOLONG;
	if (size >= SIZE_MOST)
		t->rc = t->rc ? t->rc : -EFBIG;
	if (t->rc)
		return;
	snprintf(h.name, sizeof(h.name), "%s", name);
	snprintf(h.mode, sizeof(h.mode), "%07o", 0600);
	snprintf(h.uid, sizeof(h.uid), "%07o", 0);
	snprintf(h.gid, sizeof(h.gid), "%07o", 0);
	snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)size);
	snprintf(h.mtime, sizeof(h.mtime), "%011llo",
		 (unsigned long long)t->mtime & 077777777777ull);
	snprintf(h.user, sizeof(h.user), "root");
	snprintf(h.group, sizeof(h.group), "root");
	/* The sum is taken with blanks in its own place. */
	memset(h.sum, ' ', sizeof(h.sum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += byte[i];
	snprintf(h.sum, sizeof(h.sum) - 1, "%06o", sum);
	put(t, &h, sizeof(h));
}

int tar_add(struct tar *t, const char *name, const void *data, size_t n)
{
	put_header(t, name, (int64_t)n);
	put(t, data, n);
	put_padding(t, (int64_t)n);
	return t->rc;
}

int tar_add_fd(struct tar *t, const char *name, int fd)
{
	char chunk[64 << 10];
	struct stat sb;
	off_t at = 0;

	if (fstat(fd, &sb) || !S_ISREG(sb.st_mode))
		t->rc = t->rc ? t->rc : -EINVAL;
	if (!t->rc)
		put_header(t, name, sb.st_size);
	while (!t->rc && at < sb.st_size) {
		off_t left = sb.st_size - at;
		ssize_t n = pread(fd, chunk,
				  left < (off_t)sizeof(chunk) ? (size_t)left : sizeof(chunk), at);

		if (n <= 0) /* it became shorter: what follows would be no archive */
			t->rc = n < 0 ? -errno : -EIO;
		else
			put(t, chunk, (size_t)n);
		at += n;
	}
	put_padding(t, sb.st_size);
	return t->rc;
}

int tar_end(struct tar *t)
{
	static const char zero[2 * BLOCK];
	int rc;

	put(t, zero, sizeof(zero));
	errno = 0;
	rc = gzclose(t->gz);
	t->gz = NULL;
	if (rc != Z_OK && !t->rc)
		t->rc = rc == Z_ERRNO && errno ? -errno : -EIO;
	return t->rc;
}
