// SPDX-License-Identifier: GPL-2.0-only
/* A perf.data for a bundle (bundle.h): perf is another program, which may not be there or not work.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bundle.h"
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

/* Signals are blocked in us, so that nothing is left over; perf shall end as it is used to. */
static int spawn(const char *const *argv, int said, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, usual;
	int rc;

	sigemptyset(&none);
	sigemptyset(&usual);
	sigaddset(&usual, SIGPIPE);
	sigaddset(&usual, SIGXFSZ);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &usual);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, said, 1);
	posix_spawn_file_actions_adddup2(&files, said, 2);
	rc = posix_spawnp(pid, argv[0], &files, &attr, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

static void record(struct bundle *b, const char *file, int said)
{
	char seconds[32], line[200];
	const char *const argv[] = {"perf", "kvm", "stat",  "record", "-a", "-o",
				    file,   "--",  "sleep", seconds,  NULL};
	struct stat sb;
	int status, rc;
	pid_t pid;

	snprintf(seconds, sizeof(seconds), "%.3f", (double)b->o->perf_ns / 1e9);
	rc = spawn(argv, said, &pid);
	if (rc) {
		snprintf(b->no_perf, sizeof(b->no_perf), "perf cannot be run: %s%s", strerror(-rc),
			 rc == -ENOENT ? ": install linux-perf" : "");
		return;
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	b->perf_fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (b->perf_fd >= 0 && !fstat(b->perf_fd, &sb) && sb.st_size > 0 && status == 0)
		return;
	if (b->perf_fd >= 0)
		close(b->perf_fd);
	b->perf_fd = -1;
	first_line(said, line, sizeof(line));
	snprintf(b->no_perf, sizeof(b->no_perf), "perf kvm stat record failed: %s", line);
}

void bundle_run_perf(struct bundle *b)
{
	char folder[] = "/tmp/kvmtop-perf-XXXXXX", file[64];
	FILE *said = tmpfile();

	if (!said || !mkdtemp(folder)) {
		snprintf(b->no_perf, sizeof(b->no_perf), "no room for it: %s", strerror(errno));
	} else {
		snprintf(file, sizeof(file), "%s/perf.data", folder);
		record(b, file, fileno(said));
		unlink(file);
		rmdir(folder);
	}
	if (said)
		fclose(said);
}
