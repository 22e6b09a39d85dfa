// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opens the host's files below a root directory.
 *
 * A tree given with --root is somebody's recording or a container's bind mount: its
 * absolute symbolic links are meant relative to it, so they are resolved inside
 * (openat2, RESOLVE_IN_ROOT). The real host needs no such care and gets plain openat.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "sysroot.h"
#include "text.h"

/* What /proc/<pid>/ns/pid of the initial pid namespace reads (PROC_PID_INIT_INO). */
#define INIT_PID_NS "pid:[4026531836]"

struct sysroot {
	int fd;
	bool host, live, foreign, no_openat2;
	char *dir;
};

/* An absolute path would leave the root: openat ignores its directory then. */
static const char *relative(const char *path)
{
	while (*path == '/')
		path++;
	return *path ? path : ".";
}

/*
 * For kernels without openat2: component by component, no symbolic link followed. A tree
 * that needs its links fails there with ELOOP rather than reading the host's own files.
 */
static int open_walk(int root, const char *path, int flags)
{
	char part[256];
	int dir = root, fd = -1;

	for (;;) {
		size_t n = strcspn(path, "/");
		const char *rest = path + n + strspn(path + n, "/");

		if (n >= sizeof(part) || (n == 2 && !memcmp(path, "..", 2))) {
			errno = n == 2 ? EXDEV : ENAMETOOLONG;
			break;
		}
		memcpy(part, path, n);
		part[n] = '\0';
		if (!*rest) {
			fd = openat(dir, part, flags | O_NOFOLLOW | O_CLOEXEC);
			break;
		}
		int sub = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (sub < 0)
			break;
		if (dir != root)
			close(dir);
		dir = sub;
		path = rest;
	}
	int err = fd < 0 ? -errno : fd;

	if (dir != root)
		close(dir);
	return err;
}

static int open_in_root(const struct sysroot *r, const char *path, int flags)
{
	struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = RESOLVE_IN_ROOT};
	long fd;

	if (r->no_openat2)
		return open_walk(r->fd, path, flags);
	do {
		fd = syscall(SYS_openat2, r->fd, path, &how, sizeof(how));
	} while (fd < 0 && errno == EAGAIN); /* a rename raced with ".." */
	return fd < 0 ? -errno : (int)fd;
}

int sysroot_openat(const struct sysroot *r, const char *path, int flags)
{
	int fd;

	/* A fifo in a tree of somebody else's making must not hang us, nor a terminal own us. */
	if (!(flags & O_PATH))
		flags |= O_NONBLOCK | O_NOCTTY;
	path = relative(path);
	if (!r->host)
		return open_in_root(r, path, flags);
	fd = openat(r->fd, path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool has_openat2(int dir)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT};
	long fd = syscall(SYS_openat2, dir, ".", &how, sizeof(how));

	if (fd >= 0)
		close((int)fd);
	/* Old container runtimes answer EPERM for calls that they do not know. */
	return fd >= 0 || (errno != ENOSYS && errno != EPERM);
}

/* The procfs mounted at DIR/proc shows every process of the machine, by its global pid. */
static bool proc_is_initial(const struct sysroot *r)
{
	struct statfs sf;
	char buf[64];
	int fd = sysroot_openat(r, "proc", O_PATH | O_DIRECTORY);
	int err = fd < 0 ? -1 : fstatfs(fd, &sf);

	if (fd >= 0)
		close(fd);
	if (err || sf.f_type != PROC_SUPER_MAGIC)
		return false;
	if (sysroot_readlinkf(r, buf, sizeof(buf), "proc/1/ns/pid") > 0)
		return !strcmp(buf, INIT_PID_NS);
	/* Without the right to read that link: kthreadd is pid 2 there and nowhere else. */
	return sysroot_read(r, "proc/2/comm", buf, sizeof(buf)) > 0 && !strcmp(buf, "kthreadd\n");
}

/* We, and so the processes that our /proc shows, are in another pid namespace than the first. */
static bool is_foreign(const struct sysroot *r)
{
	char buf[64];

	return r->host && sysroot_readlinkf(r, buf, sizeof(buf), "proc/self/ns/pid") > 0 &&
	       strcmp(buf, INIT_PID_NS) != 0;
}

int sysroot_open(const char *dir, struct sysroot **out)
{
	struct sysroot *r = calloc(1, sizeof(*r));
	int err;

	*out = NULL;
	if (!r)
		return -ENOMEM;
	r->fd = -1;
	r->dir = strdup(dir && *dir ? dir : "/");
	if (!r->dir) {
		err = -ENOMEM;
		goto fail;
	}
	r->host = !r->dir[strspn(r->dir, "/")];
	r->fd = open(r->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->fd < 0) {
		err = -errno;
		goto fail;
	}
	r->no_openat2 = !r->host && !has_openat2(r->fd);
	r->live = r->host || proc_is_initial(r);
	r->foreign = is_foreign(r);
	*out = r;
	return 0;
fail:
	sysroot_close(r);
	return err;
}

/* A folder without proc is a slip of the finger: better said than shown as a host without VMs. */
int sysroot_open_host(const char *dir, struct sysroot **out, char *err, size_t size)
{
	int rc = sysroot_open(dir, out), fd = -1;
	const char *what = "it";
	char shown[80];

	if (!rc) {
		what = "its proc";
		fd = sysroot_openat(*out, "proc", O_PATH | O_DIRECTORY);
		rc = fd < 0 ? fd : 0;
	}
	if (fd >= 0)
		close(fd);
	if (!rc)
		return 0;
	sysroot_close(*out);
	*out = NULL;
	text_escape(shown, sizeof(shown), dir && *dir ? dir : "/");
	snprintf(err, size,
		 "--root '%s': %s cannot be opened (%s): give a directory with the host's proc and "
		 "sys",
		 shown, what, strerror(-rc));
	return rc;
}

void sysroot_close(struct sysroot *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	free(r->dir);
	free(r);
}

const char *sysroot_dir(const struct sysroot *r)
{
	return r->dir;
}

bool sysroot_is_host(const struct sysroot *r)
{
	return r->host;
}

bool sysroot_is_live(const struct sysroot *r)
{
	return r->live;
}

bool sysroot_is_foreign(const struct sysroot *r)
{
	return r->foreign;
}

bool sysroot_has_events(const struct sysroot *r)
{
	return r->live && !r->foreign;
}

int sysroot_stat(const struct sysroot *r, const char *path, struct stat *st)
{
	int fd, err;

	path = relative(path);
	if (r->host)
		return fstatat(r->fd, path, st, 0) ? -errno : 0;
	fd = open_in_root(r, path, O_PATH);
	if (fd < 0)
		return fd;
	err = fstat(fd, st) ? -errno : 0;
	close(fd);
	return err;
}

DIR *sysroot_opendir(const struct sysroot *r, const char *path)
{
	int fd = sysroot_openat(r, path, O_RDONLY | O_DIRECTORY);
	DIR *d;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	d = fdopendir(fd);
	if (!d) {
		int err = errno;

		close(fd);
		errno = err;
	}
	return d;
}

/* From the position `at`, or on from where it stands when that is negative. */
static ssize_t read_some(int fd, char *buf, size_t size, off_t at)
{
	ssize_t n;

	do {
		n = at < 0 ? read(fd, buf, size) : pread(fd, buf, size, at);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t read_all(int fd, char *buf, size_t size, bool held)
{
	size_t len = 0;

	if (!size)
		return -EINVAL;
	buf[0] = '\0';
	/* The last byte is read too: when it comes, there was more than fits. */
	while (len < size) {
		ssize_t n = read_some(fd, buf + len, size - len, held ? (off_t)len : -1);

		if (n < 0) {
			buf[len] = '\0';
			return n;
		}
		if (!n)
			break;
		len += (size_t)n;
	}
	if (len == size) {
		buf[size - 1] = '\0';
		return -EFBIG;
	}
	buf[len] = '\0';
	return (ssize_t)len;
}

ssize_t fd_read_all(int fd, char *buf, size_t size)
{
	return read_all(fd, buf, size, true);
}

ssize_t fd_read_once(int fd, char *buf, size_t size)
{
	ssize_t n;

	if (!size)
		return -EINVAL;
	n = read_some(fd, buf, size, 0);
	if (n == (ssize_t)size) {
		buf[size - 1] = '\0';
		return -EFBIG;
	}
	buf[n > 0 ? n : 0] = '\0';
	return n;
}

ssize_t sysroot_read(const struct sysroot *r, const char *path, char *buf, size_t size)
{
	int fd = sysroot_openat(r, path, O_RDONLY);
	ssize_t n;

	if (fd < 0) {
		if (size)
			buf[0] = '\0';
		return fd;
	}
	/* Not pread: many files of debugfs (vcpu<N>/pid) have no positions. */
	n = read_all(fd, buf, size, false);
	close(fd);
	return n;
}

ssize_t sysroot_readf(const struct sysroot *r, char *buf, size_t size, const char *fmt, ...)
{
	char path[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	return sysroot_read(r, path, buf, size);
}

ssize_t sysroot_readlinkf(const struct sysroot *r, char *buf, size_t size, const char *fmt, ...)
{
	char path[512];
	va_list ap;
	ssize_t len;
	int n, fd;

	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	if (!size)
		return -EINVAL;
	buf[0] = '\0';
	if (r->host) {
		len = readlinkat(r->fd, relative(path), buf, size - 1);
	} else {
		fd = open_in_root(r, relative(path), O_PATH | O_NOFOLLOW);
		if (fd < 0)
			return fd;
		len = readlinkat(fd, "", buf, size - 1);
		if (len < 0 && errno == ENOENT)
			errno = EINVAL; /* what readlink says of a file that is no link */
		int err = errno;

		close(fd);
		errno = err;
	}
	if (len < 0)
		return -errno;
	buf[len] = '\0';
	return len;
}
