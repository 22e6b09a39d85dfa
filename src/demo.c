// SPDX-License-Identifier: GPL-2.0-only
/*
 * Starts, runs and ends the demo's guests.
 *
 * Each guest is a process of its own, so that discovery sees what it sees on a real host. It is
 * this program again (/proc/self/exe) with a command line like QEMU's. Its stdin is a pipe
 * whose other end only the parent holds: the guest ends when that end closes, however
 * the parent died.
 */
#include "demo.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_path.h"
#include "tinyvm.h"

#define MAX_VCPUS 3
#define READY_MS 5000

struct demo_vcpu {
	const char *program; /* its list of steps runs for ever */
	unsigned duty; /* per cent of a CPU */
	int nice;
	bool pinned; /* to the last CPU that this process may use */
};

struct demo_vm {
	const char *name;
	struct demo_vcpu vcpu[MAX_VCPUS];
};

/*
 * The two spinners of demo-starved weigh 110 and 15: the loser is ready for about 88% of
 * the time. A sleep's length counts only until the duty is known.
 */
static const struct demo_vm vms[] = {
	{"demo-busy", {{"spin:400 sleep:1", 60, 10, false}}},
	{"demo-exits",
	 {{"wrmsr:300 rdmsr:40 out:60 in:20 mmior:30 mmiow:30 sleep:5", 25, 10, false},
	  {"out:200 in:50 sleep:10", 15, 10, false}}},
	{"demo-starved",
	 {{"spin:20 out:2 sleep:20", 2, 10, false},
	  {"spin:inf", 0, 10, true},
	  {"spin:inf", 0, 19, true}}},
};

#define NVMS (sizeof(vms) / sizeof(vms[0]))

struct demo {
	pid_t pid[NVMS];
	int stdin_fd[NVMS];
};

/* The guest's side. */

struct runner {
	const struct demo_vcpu *config;
	struct tinyvm *vm;
	int index;
	pthread_t thread;
};

static void pin_to_last(void)
{
	cpu_set_t may, one;

	if (sched_getaffinity(0, sizeof(may), &may))
		return;
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
		if (!CPU_ISSET(cpu, &may))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

static void *runner_main(void *arg)
{
	struct runner *r = arg;
	char name[16];

	snprintf(name, sizeof(name), "CPU %d/KVM", r->index);
	prctl(PR_SET_NAME, name);
	setpriority(PRIO_PROCESS, 0, r->config->nice); /* of this thread */
	if (r->config->pinned)
		pin_to_last();
	/* A guest that cannot go on ends all: a demo with a dead VM would mislead. */
	if (tinyvm_run(r->vm, r->index, 0) < 0)
		_exit(1);
	return NULL;
}

static int add_vcpus(const struct demo_vm *config, struct tinyvm *vm, struct runner *r)
{
	int n = 0, index;

	for (; n < MAX_VCPUS && config->vcpu[n].program; n++) {
		struct tinyvm_program p = {.duty = config->vcpu[n].duty};

		if (tinyvm_parse(config->vcpu[n].program, &p))
			return -EINVAL;
		p.loops = TINYVM_FOREVER;
		index = tinyvm_add_vcpu(vm, n, &p);
		if (index < 0)
			return index;
		r[n] = (struct runner){.config = &config->vcpu[n], .vm = vm, .index = index};
	}
	return n;
}

/* Prints "ready", or why not, for demo_start(). */
static int guest(const struct demo_vm *config)
{
	struct runner r[MAX_VCPUS];
	const char *what = "";
	struct tinyvm *vm;
	char byte;
	int n = tinyvm_new(&vm, &what);

	if (!n) {
		what = "KVM refuses a vCPU";
		n = add_vcpus(config, vm, r);
	}
	if (n < 0) {
		printf("%s: %s\n", what, strerror(-n));
		return 1;
	}
	for (int i = 0; i < n; i++)
		if (pthread_create(&r[i].thread, NULL, runner_main, &r[i]))
			return 1;
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	tinyvm_stop(vm);
	for (int i = 0; i < n; i++)
		pthread_join(r[i].thread, NULL);
	tinyvm_free(vm);
	return 0;
}

int demo_guest_main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "kvmtop-demo"); /* else it would be "exe" */
	setpriority(PRIO_PROCESS, 0, 10);
	for (size_t i = 0; argc > 2 && i < NVMS; i++)
		if (!strcmp(argv[2], vms[i].name))
			return guest(&vms[i]);
	return 2;
}

/* The side of kvmtop. */

/* stdin and stdout are the pipes; stderr would write into the screen. */
static int set_files(posix_spawn_file_actions_t *files, int in, int out)
{
	int err = posix_spawn_file_actions_adddup2(files, in, STDIN_FILENO);

	if (!err)
		err = posix_spawn_file_actions_adddup2(files, out, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addopen(files, STDERR_FILENO, "/dev/null", O_WRONLY,
						       0);
	return err;
}

/* kvmtop itself has signals blocked, its guests must not. */
static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t none;
	int err;

	sigemptyset(&none);
	err = posix_spawnattr_setsigmask(attr, &none);
	return err ? err : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK);
}

static int spawn(const char *name, int in, int out, pid_t *pid)
{
	char self[] = "kvmtop-demo", command[] = DEMO_GUEST_COMMAND, flag[] = "-name";
	char guest_name[64] = "guest=";
	char *argv[] = {self, command, guest_name + strlen(guest_name), flag, guest_name, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int err;

	snprintf(argv[2], sizeof(guest_name) - strlen(guest_name), "%s", name);
	err = posix_spawn_file_actions_init(&files);
	if (err)
		return -err;
	err = posix_spawnattr_init(&attr);
	if (err) {
		posix_spawn_file_actions_destroy(&files);
		return -err;
	}
	err = set_files(&files, in, out);
	if (!err)
		err = set_signals(&attr);
	if (!err)
		err = posix_spawn(pid, "/proc/self/exe", &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return -err;
}

/* The guest's first line: 0 when it is "ready", else -EIO and the line in err. */
static int wait_ready(int fd, char *err, size_t errsize)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char line[160] = "";
	ssize_t n = 0;

	if (poll(&p, 1, READY_MS) > 0)
		n = read(fd, line, sizeof(line) - 1);
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (!strcmp(line, "ready"))
		return 0;
	snprintf(err, errsize, "the demo's guests cannot start: %s",
		 *line ? line : "no answer from a guest");
	return -EIO;
}

static int start_one(struct demo *d, size_t i, char *err, size_t errsize)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, r;

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		r = -errno;
	else
		r = spawn(vms[i].name, in[0], out[1], &d->pid[i]);
	if (in[0] >= 0)
		close(in[0]);
	if (out[1] >= 0)
		close(out[1]);
	d->stdin_fd[i] = in[1];
	if (r)
		snprintf(err, errsize, "cannot start the demo's guests: %s", strerror(-r));
	else
		r = wait_ready(out[0], err, errsize);
	if (out[0] >= 0)
		close(out[0]);
	return r;
}

static int check_kvm(char *err, size_t errsize)
{
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC), r = errno;
	char self[PATH_MAX];

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (r == ENOENT)
		snprintf(err, errsize,
			 "no /dev/kvm: load KVM (modprobe kvm_intel or kvm_amd) and enable "
			 "virtualization in the firmware, or nesting for this guest");
	else if (r == EACCES || r == EPERM)
		snprintf(err, errsize, "no right to /dev/kvm: sudo %s demo",
			 own_command(self, sizeof(self)));
	else
		snprintf(err, errsize, "cannot open /dev/kvm: %s", strerror(r));
	return -r;
}

int demo_start(struct demo **out, char *err, size_t errsize)
{
	struct demo *d;
	int r = check_kvm(err, errsize);

	*out = NULL;
	if (r)
		return r;
	d = calloc(1, sizeof(*d));
	if (!d) {
		snprintf(err, errsize, "no memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < NVMS; i++)
		d->stdin_fd[i] = -1;
	for (size_t i = 0; i < NVMS && !r; i++)
		r = start_one(d, i, err, errsize);
	if (r) {
		demo_stop(d);
		return r;
	}
	*out = d;
	return 0;
}

void demo_stop(struct demo *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < NVMS; i++) {
		if (d->stdin_fd[i] >= 0)
			close(d->stdin_fd[i]);
		/* At once: nothing of a demo's guest is worth an orderly end. */
		if (d->pid[i] > 0)
			kill(d->pid[i], SIGKILL);
	}
	for (size_t i = 0; i < NVMS; i++)
		while (d->pid[i] > 0 && waitpid(d->pid[i], NULL, 0) < 0 && errno == EINTR)
			;
	free(d);
}
