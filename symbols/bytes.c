// SPDX-License-Identifier: GPL-2.0-only
/* Opening and reading files of others (bytes.h). */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zlib.h>

#include "bytes.h"

#define FIRST_ROOM (64u << 10)
/* More memory than any file that xz itself makes needs. */
#define XZ_MEMORY (192u << 20)

void bytes_free(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){0};
}

/* Room for more at the end; *room is what b->data has. */
static int grow(struct bytes *b, size_t *room, size_t limit)
{
	size_t want = *room ? *room * 2 : FIRST_ROOM;
	char *p;

	if (b->len < *room)
		return 0;
	if (b->len > limit)
		return -EFBIG;
	/* One more than the limit: that it comes is how too much is seen. */
	if (want > limit + 1)
		want = limit + 1;
	p = realloc(b->data, want);
	if (!p)
		return -ENOMEM;
	b->data = p;
	*room = want;
	return 0;
}

/* --- packed data --- */

static int gunzip(const void *data, size_t len, size_t limit, struct bytes *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)len};
	size_t room = 0;
	int rc = 0, z_rc;

	if (inflateInit2(&z, 15 + 16) != Z_OK)
		return -ENOMEM;
	do {
		rc = grow(out, &room, limit);
		if (rc)
			break;
		z.next_out = (Bytef *)out->data + out->len;
		z.avail_out = (uInt)(room - out->len);
		z_rc = inflate(&z, Z_NO_FLUSH);
		out->len = room - z.avail_out;
		/* Several packed files, one behind the other, are one. */
		if (z_rc == Z_STREAM_END && z.avail_in)
			z_rc = inflateReset(&z);
		else if (z_rc != Z_OK && z_rc != Z_STREAM_END)
			rc = -EBADMSG;
	} while (!rc && z_rc != Z_STREAM_END);
	inflateEnd(&z);
	return rc;
}

static int unxz(const void *data, size_t len, size_t limit, struct bytes *out)
{
	lzma_stream z = LZMA_STREAM_INIT;
	lzma_ret z_rc = lzma_stream_decoder(&z, XZ_MEMORY, LZMA_CONCATENATED);
	size_t room = 0;
	int rc = z_rc == LZMA_OK ? 0 : -ENOMEM;

	z.next_in = data;
	z.avail_in = len;
	while (!rc && z_rc == LZMA_OK) {
		rc = grow(out, &room, limit);
		if (rc)
			break;
		z.next_out = (uint8_t *)out->data + out->len;
		z.avail_out = room - out->len;
		z_rc = lzma_code(&z, LZMA_FINISH);
		out->len = room - z.avail_out;
		if (z_rc != LZMA_OK && z_rc != LZMA_STREAM_END)
			rc = z_rc == LZMA_MEM_ERROR ? -ENOMEM : -EBADMSG;
	}
	lzma_end(&z);
	return rc;
}

int bytes_unpack(const void *data, size_t len, size_t limit, struct bytes *out)
{
	int rc = -ENOENT;

	*out = (struct bytes){0};
	if (len > UINT32_MAX)
		return -EFBIG;
	if (len > 2 && memcmp(data, "\x1f\x8b", 2) == 0)
		rc = gunzip(data, len, limit, out);
	else if (len > 6 && memcmp(data,
				   "\xfd"
				   "7zXZ",
				   6) == 0)
		rc = unxz(data, len, limit, out);
	if (!rc && out->len > limit)
		rc = -EFBIG;
	if (rc)
		bytes_free(out);
	return rc;
}

/* --- reading --- */

static int read_all(int fd, size_t limit, struct bytes *out)
{
	struct stat st;
	size_t room = 0;
	ssize_t n = 1;
	int rc = 0;

	*out = (struct bytes){0};
	/* One piece where the size is known; files of /proc say 0. */
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		if ((uint64_t)st.st_size > limit)
			return -EFBIG;
		room = (size_t)st.st_size + 1;
		out->data = malloc(room);
		if (!out->data)
			return -ENOMEM;
	}
	while (!rc && n) {
		rc = grow(out, &room, limit);
		if (rc)
			break;
		n = read(fd, out->data + out->len, room - out->len);
		if (n < 0 && errno != EINTR)
			rc = -errno;
		out->len += n > 0 ? (size_t)n : 0;
	}
	if (!rc && out->len > limit)
		rc = -EFBIG;
	if (rc)
		bytes_free(out);
	return rc;
}

int bytes_read(int fd, size_t limit, struct bytes *out)
{
	struct bytes raw;
	int rc = read_all(fd, limit, &raw);

	*out = (struct bytes){0};
	if (rc)
		return rc;
	rc = bytes_unpack(raw.data, raw.len, limit, out);
	if (rc == -ENOENT) {
		*out = raw;
		return 0;
	}
	bytes_free(&raw);
	return rc;
}

/* --- opening --- */

/*
 * Takes a descriptor that opened nothing yet (O_PATH). What is no regular file is not opened at
 * all: to open a fifo may hang, and a device may act on it.
 */
static int open_regular(int path_fd)
{
	char self[40];
	struct stat st;
	int fd = -1, err;

	if (path_fd < 0)
		return -errno;
	if (fstat(path_fd, &st) < 0)
		err = errno;
	else if (!S_ISREG(st.st_mode))
		err = S_ISLNK(st.st_mode) ? ELOOP : EINVAL;
	else {
		snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
		fd = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		err = errno;
	}
	close(path_fd);
	return fd < 0 ? -err : fd;
}

int bytes_open(const char *path)
{
	return open_regular(open(path, O_PATH | O_CLOEXEC));
}

int bytes_open_fd(int path_fd)
{
	if (path_fd < 0)
		return path_fd;
	return open_regular(path_fd);
}

static long try_openat2(int dir, const char *path, uint64_t resolve)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = resolve};
	long fd;

	do {
		fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
	} while (fd < 0 && errno == EAGAIN); /* a rename raced with ".." */
	return fd;
}

/* Kernels before 5.6 have no openat2, old container runtimes answer EPERM for it. */
static bool no_openat2(long fd)
{
	return fd < 0 && (errno == ENOSYS || errno == EPERM);
}

/* Component by component; no link is followed. */
static int walk(int dir, const char *path)
{
	int at = dir, fd = -1;

	for (;;) {
		size_t n = strcspn(path, "/");
		const char *rest = path + n + strspn(path + n, "/");
		char part[256];
		int sub;

		if (!n || n >= sizeof(part) || (n == 2 && memcmp(path, "..", 2) == 0)) {
			errno = EXDEV;
			break;
		}
		memcpy(part, path, n);
		part[n] = '\0';
		if (!*rest) {
			fd = openat(at, part, O_PATH | O_CLOEXEC | O_NOFOLLOW);
			break;
		}
		sub = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			break;
		if (at != dir)
			close(at);
		at = sub;
		path = rest;
	}
	int err = errno;

	if (at != dir)
		close(at);
	errno = err;
	return fd;
}

int bytes_open_beneath(int dir, const char *path)
{
	long fd = try_openat2(dir, path, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	if (no_openat2(fd))
		fd = walk(dir, path);
	return open_regular((int)fd);
}

int bytes_open_in_root(int root, const char *path)
{
	long fd = try_openat2(root, path, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS);

	if (no_openat2(fd))
		fd = walk(root, path + strspn(path, "/"));
	return open_regular((int)fd);
}

const char *bytes_error(int rc)
{
	switch (rc) {
	case -EINVAL:
		return "no regular file";
	case -ELOOP:
		return "symbolic links are not followed here";
	case -EBADMSG:
		return "broken gzip or xz data";
	case -EFBIG:
		return "far too large";
	case -E2BIG:
		return "more symbols or modules than any kernel has";
	default:
		return strerror(-rc);
	}
}

int stamp_of(int fd, struct stamp *out)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	*out = (struct stamp){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns =
			(uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec,
		.ctime_ns =
			(uint64_t)st.st_ctim.tv_sec * 1000000000u + (uint64_t)st.st_ctim.tv_nsec,
	};
	return 0;
}
