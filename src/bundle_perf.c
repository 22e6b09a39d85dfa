// SPDX-License-Identifier: GPL-2.0-only
/* A perf.data for a bundle (bundle.h): perf is another program, which may not be there or not work.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bundle.h"
#include "child.h"
#include "clock.h"
#include "text.h"

/* What a program said, in one line: the first that is not empty. */
static void first_line(int fd, char *buf, size_t size)
{
	char text[2000], *line = text;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	line += strspn(line, " \n\t");
	line[strcspn(line, "\n")] = '\0';
	text_escape(buf, size, line);
}

/* Where perf finds its file: one without a name, of which a kvmtop that is killed leaves nothing.
 */
#define DATA_FD 3
#define DATA_PATH "/proc/self/fd/3"

/* The child: it goes when we are killed, and shall end as it is used to. */
static void become(const char *const *argv, pid_t parent, int said, int data, int failed)
{
	sigset_t none;
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC), rc;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	failed = fcntl(failed, F_DUPFD_CLOEXEC, DATA_FD + 1);
	data = fcntl(data, F_DUPFD_CLOEXEC, DATA_FD + 1);
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(said, STDOUT_FILENO) >= 0 &&
	    dup2(said, STDERR_FILENO) >= 0 && dup2(data, DATA_FD) >= 0) {
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGPIPE, SIG_DFL);
		signal(SIGXFSZ, SIG_DFL);
		execvp(argv[0], (char *const *)argv);
	}
	rc = errno;
	if (write(failed, &rc, sizeof(rc)) < 0)
		_exit(1);
	_exit(127);
}

/* 0, or -errno also of what failed in the child: there is no perf, say. */
static int spawn(const char *const *argv, int said, int data, pid_t *pid)
{
	pid_t parent = getpid();
	int failed[2], rc = 0;

	if (pipe2(failed, O_CLOEXEC) < 0)
		return -errno;
	*pid = fork();
	if (*pid == 0)
		become(argv, parent, said, data, failed[1]);
	if (*pid < 0)
		rc = errno;
	close(failed[1]);
	if (*pid > 0 && read(failed[0], &rc, sizeof(rc)) == (ssize_t)sizeof(rc))
		waitpid(*pid, NULL, 0);
	close(failed[0]);
	return -rc;
}

static void record(struct bundle *b, int data, int said)
{
	char seconds[32], line[200];
	const char *const argv[] = {"perf",    "kvm", "stat",  "record", "-a", "-o",
				    DATA_PATH, "--",  "sleep", seconds,	 NULL};
	int status = 0, rc;
	struct stat sb;
	pid_t pid = -1;

	snprintf(seconds, sizeof(seconds), "%.3f", (double)b->o->perf_ns / 1e9);
	rc = spawn(argv, said, data, &pid);
	if (rc) {
		snprintf(b->no_perf, sizeof(b->no_perf), "perf cannot be run: %s%s", strerror(-rc),
			 rc == -ENOENT ? ": install linux-perf" : "");
		return;
	}
	if (child_wait(pid, b->sigfd, -1, &status)) {
		b->ended = true;
		child_end(pid, b->sigfd, &status);
		return;
	}
	if (!fstat(data, &sb) && sb.st_size > 0 && status == 0)
		b->perf_fd = fcntl(data, F_DUPFD_CLOEXEC, DATA_FD);
	if (b->perf_fd >= 0)
		return;
	first_line(said, line, sizeof(line));
	snprintf(b->no_perf, sizeof(b->no_perf), "perf kvm stat record failed: %s", line);
}

void bundle_run_perf(struct bundle *b)
{
	FILE *said = tmpfile(), *data = tmpfile();

	if (said && data)
		record(b, fileno(data), fileno(said));
	else
		snprintf(b->no_perf, sizeof(b->no_perf), "no room for it: %s", strerror(errno));
	if (said)
		fclose(said);
	if (data)
		fclose(data);
}
