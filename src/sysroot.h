// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's /proc and /sys, below a root directory (--root DIR): every path of the
 * host opens here and nowhere else.
 *
 * Paths are relative to the root: "proc/stat", "sys/kernel/debug/kvm".
 */
#ifndef KVMTOP_SYSROOT_H
#define KVMTOP_SYSROOT_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct sysroot;

/* What mends a root that is foreign (below). */
#define MEND_PID_NAMESPACE "docker run --pid=host …, or bind the host's / and give --root"

/* dir NULL or "/": the real host. 0 or -errno. */
int sysroot_open(const char *dir, struct sysroot **out);
/*
 * The same where it shall be a host's: there is proc in it, at least. Else one line in err: what,
 * why, how to mend it.
 */
int sysroot_open_host(const char *dir, struct sysroot **out, char *err, size_t size);
void sysroot_close(struct sysroot *r);
const char *sysroot_dir(const struct sysroot *r); /* "/" for the host */
bool sysroot_is_host(const struct sysroot *r);
/*
 * True where the files are this machine's: the host itself, or DIR/proc is a mounted procfs of
 * the initial pid namespace. Else it is a recorded tree ("fixture").
 */
bool sysroot_is_live(const struct sysroot *r);
/* True for the host's own files seen from a container's pid namespace: their pids are other
 * numbers. */
bool sysroot_is_foreign(const struct sysroot *r);
/*
 * True where perf and BPF may be used: events carry thread numbers of the initial pid namespace,
 * which are those of the files only where these are live and not foreign.
 */
bool sysroot_has_events(const struct sysroot *r);

/* fd or -errno; never waits for a fifo's other end (O_NONBLOCK is added). */
int sysroot_openat(const struct sysroot *r, const char *path, int flags);
int sysroot_stat(const struct sysroot *r, const char *path, struct stat *st); /* 0 or -errno */
DIR *sysroot_opendir(const struct sysroot *r, const char *path); /* NULL with errno set */
/*
 * Reads a small file whole, at most size-1 bytes, and terminates it. Returns the length
 * or -errno; -EFBIG when there was more (buf then holds the beginning).
 */
ssize_t sysroot_read(const struct sysroot *r, const char *path, char *buf, size_t size);
ssize_t sysroot_readf(const struct sysroot *r, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* readlink, terminated; length or -errno. */
ssize_t sysroot_readlinkf(const struct sysroot *r, char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Reads a held descriptor from its beginning (pread); as sysroot_read. ESRCH: the task is gone. */
ssize_t fd_read_all(int fd, char *buf, size_t size);
/* The same with one pread: for files of /proc that the kernel writes in one piece (stat). */
ssize_t fd_read_once(int fd, char *buf, size_t size);

#endif
