// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a merge reads is read more than once (merge.h): a pipe, and the text of a trace.dat, become
 * files without a name. A trace.dat's text is made by trace-cmd itself: libtracecmd does not tell
 * which clock it was recorded with, and a damaged file ends that process and not this one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "merge.h"

/* How trace.dat begins. */
static const char magic[] = "\x17\x08\x44tracing";

static int spool_make(void)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	int fd;

	/* /tmp is often memory. */
	dir = dir && *dir ? dir : "/var/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof(path), "%s/kvmtop-merge.XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int copy_all(int from, int to)
{
	char buf[65536];

	for (;;) {
		ssize_t n = read(from, buf, sizeof(buf));

		if (n == 0)
			return 0;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		for (ssize_t at = 0, w; at < n; at += w) {
			w = write(to, buf + at, (size_t)(n - at));
			if (w < 0 && errno != EINTR)
				return -errno;
			w = w < 0 ? 0 : w;
		}
	}
}

/* What cannot be sought becomes a file. */
static int spool_pipe(struct merge_input *in)
{
	int to, rc;

	if (lseek(in->fd, 0, SEEK_CUR) >= 0)
		return 0;
	to = spool_make();
	rc = to < 0 ? to : copy_all(in->fd, to);
	close(in->fd);
	in->fd = to;
	return rc;
}

static bool is_dat(int fd)
{
	char start[sizeof(magic) - 1];

	return pread(fd, start, sizeof(start), 0) == (ssize_t)sizeof(start) &&
	       memcmp(start, magic, sizeof(start)) == 0;
}

static void become_report(int from, int to)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", from);
	if (fcntl(from, F_SETFD, 0) < 0 || dup2(to, STDOUT_FILENO) < 0)
		_exit(126);
	signal(SIGPIPE, SIG_DFL);
	execlp("trace-cmd", "trace-cmd", "report", "-i", path, (char *)NULL);
	_exit(127);
}

/* 0; -ENOEXEC: there is no trace-cmd; -EPROTO: it made nothing of the file; -errno. */
static int report(int from, int to)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		become_report(from, to);
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return -ENOEXEC;
	/* Of a file that is cut off it prints nothing, and ends well. */
	return status || lseek(to, 0, SEEK_END) <= 0 ? -EPROTO : 0;
}

int merge_spool(struct merge_input *in)
{
	int rc = spool_pipe(in), to;

	if (rc || !is_dat(in->fd))
		return rc;
	to = spool_make();
	if (to < 0)
		return to;
	rc = report(in->fd, to);
	close(in->fd);
	in->fd = to;
	return rc;
}
