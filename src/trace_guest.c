// SPDX-License-Identifier: GPL-2.0-only
/* The guest's half of a trace (trace_guest.h). */
#include "trace_guest.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stream.h"
#include "text.h"

/* What a guest does between its exits: who runs, who is woken, by which interrupt. */
#define EVENTS                                                                                     \
	"sched/sched_switch sched/sched_waking sched/sched_wakeup irq/irq_handler_entry "          \
	"irq/softirq_entry timer/hrtimer_expire_entry"

void trace_guest_script(FILE *to, double seconds)
{
	fputs("t=/sys/kernel/tracing\n"
	      "[ -d $t/instances ] || mount -t tracefs tracefs $t 2>/dev/null\n"
	      "[ -d $t/instances ] || t=/sys/kernel/debug/tracing\n"
	      "i=$t/instances/kvmtop-$$\n"
	      "mkdir $i || exit 1\n"
	      "gone() { echo 0 > $i/tracing_on; rmdir $i; }\n"
	      "trap gone EXIT\n"
	      "trap 'exit 1' HUP INT TERM PIPE\n"
	      "echo 0 > $i/tracing_on\n"
	      "echo x86-tsc > $i/trace_clock || exit 1\n"
	      "b=$((131072 / $(grep -c ^processor /proc/cpuinfo)))\n"
	      "[ $b -lt 8192 ] || b=8192\n"
	      "echo $b > $i/buffer_size_kb\n"
	      "for e in " EVENTS "; do\n"
	      "  [ -e $i/events/$e/enable ] && echo 1 > $i/events/$e/enable\n"
	      "done\n"
	      "echo 1 > $i/tracing_on\n",
	      to);
	fprintf(to, "sleep %g\n", seconds);
	fputs("echo 0 > $i/tracing_on\n"
	      "cat $i/trace\n",
	      to);
}

static int script_file(double seconds)
{
	int fd = memfd_create("kvmtop-trace", MFD_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(dup(fd), "w");

	if (!f) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	trace_guest_script(f, seconds);
	if (stream_close(f) || lseek(fd, 0, SEEK_SET) < 0) {
		close(fd);
		return -EIO;
	}
	return fd;
}

/* The child: its errors stay the terminal's, and so do the questions that ssh asks. */
static void become(char *const *words, int n, int in, int out)
{
	char **argv = calloc((size_t)n + 2, sizeof(*argv)), shown[200];
	static char shell[] = "sh";
	sigset_t none;

	if (!argv || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
		_exit(126);
	memcpy(argv, words, (size_t)n * sizeof(*argv));
	argv[n] = shell;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execvp(argv[0], argv);
	n = errno;
	text_escape(shown, sizeof(shown), argv[0]);
	dprintf(STDERR_FILENO, "kvmtop: %s: %s\n", shown, strerror(n));
	_exit(127);
}

pid_t trace_guest_start(char *const *words, int n, double seconds, int out)
{
	int in = script_file(seconds);
	pid_t pid;

	if (in < 0)
		return in;
	pid = fork();
	if (pid == 0)
		become(words, n, in, out);
	pid = pid < 0 ? -errno : pid;
	close(in);
	return pid;
}
