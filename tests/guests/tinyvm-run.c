// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs tiny guests (src/tinyvm.h) for the integration tests and prints their true counts.
 *
 * Protocol: when all is set up it prints a line "ready pid=P vm=V vcpu=I id=K tid=T …" a vCPU
 * and then "go?"; a line on stdin starts the guests (so that a monitor can be attached before the
 * first event), a second one or the end of stdin stops endless ones. Then one line of
 * JSON a vCPU, and it exits with 0. It never outlives the process that started it.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "clock.h"
#include "tinyvm.h"

enum shape {
	SHAPE_THREADS, /* a thread a vCPU */
	SHAPE_ONE, /* one thread runs the vCPUs of a VM in turn */
	SHAPE_HOP, /* two threads a vCPU that take it from each other */
};

#define MAX_VMS 8
#define MAX_TEXT 32

struct config {
	const char *program[TINYVM_MAX_VCPUS];
	int nprogram;
	int vms, vcpus;
	int ids[TINYVM_MAX_VCPUS], nids;
	int pins[TINYVM_MAX_VCPUS], npins;
	const char *thread_name; /* printf format with one %d, "" leaves the process's name */
	enum shape shape;
	enum tinyvm_mode mode;
	unsigned loops, rate;
	bool loops_set, late, idle_class, now;
	long life_ms; /* stop after so long; 0: when told */
	int nmi_ms; /* HLT waits in the kernel; so often those that sleep get an NMI */
	long slice; /* exits a vCPU runs on a thread before it changes */
};

struct job;

/* One thread; vCPUs first … first + n - 1 of its VM. */
struct worker {
	pthread_t thread;
	struct job *job;
	struct tinyvm *vm;
	int vmno, first, n;
	int turn, turns; /* SHAPE_HOP: whose turn it is, see hop() */
	atomic_int *token;
	pid_t tid;
	int stat; /* its own in /proc, see asleep() */
	int result;
};

struct job {
	struct config c;
	struct tinyvm *vm[MAX_VMS];
	struct worker worker[MAX_VMS * TINYVM_MAX_VCPUS * 2];
	atomic_int token[MAX_VMS * TINYVM_MAX_VCPUS];
	int nworkers;
	pthread_barrier_t ready, go;
	atomic_int running;
	int done; /* eventfd: the last worker ended */
};

static void die(const char *what, int err)
{
	fprintf(stderr, "tinyvm-run: %s%s%s\n", what, err ? ": " : "", err ? strerror(-err) : "");
	exit(1);
}

static int id_of(const struct config *c, int index)
{
	return index < c->nids ? c->ids[index] : index;
}

static void name_thread(const struct config *c, int index)
{
	char name[64], number[16];
	const char *at = strstr(c->thread_name, "%d");

	if (!*c->thread_name)
		return;
	snprintf(number, sizeof(number), "%d", index);
	snprintf(name, sizeof(name), "%.*s%s%s", at ? (int)(at - c->thread_name) : 15,
		 c->thread_name, at ? number : "", at ? at + 2 : "");
	name[15] = '\0';
	prctl(PR_SET_NAME, name);
}

static void pin(const struct config *c, int index)
{
	cpu_set_t set;

	if (!c->npins)
		return;
	CPU_ZERO(&set);
	CPU_SET(c->pins[index % c->npins], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("cannot pin", -errno);
}

static void set_class(const struct config *c)
{
	struct sched_param p = {0};

	if (c->idle_class && sched_setscheduler(0, SCHED_IDLE, &p))
		die("SCHED_IDLE", -errno);
}

static int run_all(struct worker *w)
{
	int left = w->n, slice = (int)w->job->c.slice, r;

	if (w->n == 1)
		return tinyvm_run(w->vm, w->first, 0);
	for (bool ended[TINYVM_MAX_VCPUS] = {false}; left;) {
		for (int i = 0; i < w->n; i++) {
			if (ended[i])
				continue;
			r = tinyvm_run(w->vm, w->first + i, (uint64_t)slice);
			if (r < 0)
				return r;
			ended[i] = r == 1;
			left -= ended[i];
		}
	}
	return 1;
}

/* The vCPU goes to and fro between two threads; the token says whose turn it is, -1: ended. */
static int hop(struct worker *w)
{
	int r = 0, holder;

	while ((holder = atomic_load(w->token)) >= 0) {
		if (holder != w->turn) {
			usleep(100);
			continue;
		}
		r = tinyvm_run(w->vm, w->first, (uint64_t)w->job->c.slice);
		atomic_store(w->token, r ? -1 : !w->turn);
	}
	return r < 0 ? r : 1;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	uint64_t one = 1;

	w->tid = gettid();
	if (w->job->c.nmi_ms)
		w->stat = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
	if (w->stat < 0)
		die("cannot open /proc/thread-self/stat", -errno);
	name_thread(&w->job->c, w->first);
	pin(&w->job->c, w->first);
	set_class(&w->job->c);
	pthread_barrier_wait(&w->job->ready);
	pthread_barrier_wait(&w->job->go);
	w->result = w->job->c.shape == SHAPE_HOP ? hop(w) : run_all(w);
	if (atomic_fetch_sub(&w->job->running, 1) == 1 && write(w->job->done, &one, 8) != 8)
		die("eventfd", -errno);
	return NULL;
}

static void add_worker(struct job *j, int vmno, int first, int n, int turn)
{
	struct worker *w = &j->worker[j->nworkers++];

	*w = (struct worker){.job = j, .vm = j->vm[vmno], .vmno = vmno, .first = first, .n = n};
	w->turn = turn;
	w->token = &j->token[vmno * TINYVM_MAX_VCPUS + first];
}

static void make_vm(struct job *j, int vmno)
{
	const struct config *c = &j->c;
	const char *what;
	int err = tinyvm_new(&j->vm[vmno], &what);

	if (err)
		die(what, err);
	if (c->nmi_ms && (err = tinyvm_irqchip(j->vm[vmno])))
		die("cannot have KVM's interrupt controllers", err);
	for (int i = 0; i < c->vcpus; i++) {
		struct tinyvm_program p = {.rate = c->rate, .mode = c->mode};
		const char *text = c->program[i < c->nprogram ? i : c->nprogram - 1];

		if (tinyvm_parse(text, &p))
			die("bad program", 0);
		if (c->loops_set)
			p.loops = c->loops;
		err = tinyvm_add_vcpu(j->vm[vmno], id_of(c, i), &p);
		if (err < 0)
			die("cannot add a vCPU", err);
		if (c->shape != SHAPE_ONE)
			add_worker(j, vmno, i, 1, 0);
		if (c->shape == SHAPE_HOP)
			add_worker(j, vmno, i, 1, 1);
	}
	if (c->shape == SHAPE_ONE)
		add_worker(j, vmno, 0, c->vcpus, 0);
}

static void start(struct job *j)
{
	for (int i = 0; i < j->c.vms; i++)
		make_vm(j, i);
	j->running = j->nworkers;
	j->done = eventfd(0, EFD_CLOEXEC);
	pthread_barrier_init(&j->ready, NULL, (unsigned)j->nworkers + 1);
	pthread_barrier_init(&j->go, NULL, (unsigned)j->nworkers + 1);
	for (int i = 0; i < j->nworkers; i++)
		if (pthread_create(&j->worker[i].thread, NULL, worker_main, &j->worker[i]))
			die("no thread", 0);
	pthread_barrier_wait(&j->ready);
}

static void say_ready(const struct job *j)
{
	for (int i = 0; i < j->nworkers; i++) {
		const struct worker *w = &j->worker[i];

		for (int v = 0; v < w->n; v++)
			printf("ready pid=%d vm=%d vcpu=%d id=%d tid=%d\n", getpid(), w->vmno,
			       w->first + v, id_of(&j->c, w->first + v), w->tid);
	}
}

/* A line of stdin, byte by byte so that the next one stays there; false at its end. */
static bool wait_line(void)
{
	char ch;
	ssize_t n;

	while ((n = read(0, &ch, 1)) == 1 || (n < 0 && errno == EINTR))
		if (n == 1 && ch == '\n')
			return true;
	return false;
}

static bool asleep(const struct worker *w)
{
	char text[256];
	ssize_t n = pread(w->stat, text, sizeof(text) - 1, 0);
	const char *end;

	if (n <= 0) /* it ended */
		return false;
	text[n] = '\0';
	end = strrchr(text, ')');
	return end && !strncmp(end, ") S", 3);
}

/*
 * Only a vCPU that really sleeps is woken: where its wake-up is there before it does, it never
 * waits, the kernel has no kvm_vcpu_wakeup to tell, and the guest's count of HLTs is not the truth.
 */
static void wake_sleepers(struct job *j)
{
	for (int i = 0; i < j->nworkers; i++) {
		const struct worker *w = &j->worker[i];

		for (int v = 0; v < w->n && asleep(w); v++)
			tinyvm_nmi(w->vm, w->first + v);
	}
}

/* How long to wait at most, -1: for ever; 0: the guests' life is over. */
static int wait_ms(const struct job *j, int64_t end)
{
	int64_t left = (end - clock_mono_ns()) / NS_PER_MS;
	int nmi = j->c.nmi_ms;

	if (!j->c.life_ms)
		return nmi ? nmi : -1;
	if (left <= 0)
		return 0;
	return nmi && nmi < left ? nmi : (int)left;
}

/* Until the guests ended, their life is over, or stdin says so. */
static void wait_end(struct job *j)
{
	struct pollfd p[2] = {{.fd = j->done, .events = POLLIN}, {.fd = 0, .events = POLLIN}};
	int64_t end = clock_mono_ns() + j->c.life_ms * NS_PER_MS;
	int timeout, n;

	do {
		timeout = wait_ms(j, end);
		if (!timeout)
			return;
		n = poll(p, j->c.now ? 1 : 2, timeout);
		if (j->c.nmi_ms)
			wake_sleepers(j);
	} while (n == 0 || (n < 0 && errno == EINTR));
}

static void finish(struct job *j)
{
	for (int i = 0; i < j->c.vms; i++)
		tinyvm_stop(j->vm[i]);
	while (j->c.nmi_ms && atomic_load(&j->running)) {
		wake_sleepers(j); /* a guest in HLT does not see that it shall stop */
		usleep(1000);
	}
	for (int i = 0; i < j->nworkers; i++) {
		pthread_join(j->worker[i].thread, NULL);
		if (j->worker[i].result < 0)
			die("KVM_RUN", j->worker[i].result);
	}
}

static void print_counts(const struct job *j, int vmno, int index)
{
	struct tinyvm_counts c;

	tinyvm_counts(j->vm[vmno], index, &c);
	printf("{\"pid\":%d,\"vm\":%d,\"vcpu\":%d,\"kvm_id\":%d,\"finished\":%s", getpid(), vmno,
	       index, id_of(&j->c, index), c.finished ? "true" : "false");
	for (int op = 0; op < TINYVM_OPS; op++)
		printf(",\"%s\":%llu", tinyvm_op_name((enum tinyvm_op)op),
		       (unsigned long long)c.done[op]);
	printf(",\"userexit\":%llu,\"io\":%llu,\"mmio\":%llu,\"hlts\":%llu,\"intr\":%llu",
	       (unsigned long long)c.runs, (unsigned long long)c.exit_io,
	       (unsigned long long)c.exit_mmio, (unsigned long long)c.exit_hlt,
	       (unsigned long long)c.exit_intr);
	printf(",\"port_out\":%llu,\"port_in\":%llu,\"mmio_read\":%llu,\"mmio_write\":%llu}\n",
	       (unsigned long long)c.port_out, (unsigned long long)c.port_in,
	       (unsigned long long)c.mmio_read, (unsigned long long)c.mmio_write);
}

static int list(const char *text, int *out)
{
	char *end;
	int n = 0;

	for (const char *s = text; *s && n < TINYVM_MAX_VCPUS; s = *end ? end + 1 : end) {
		out[n++] = (int)strtol(s, &end, 10);
		if (end == s || (*end && *end != ','))
			die("bad list", 0);
	}
	return n;
}

static const char usage[] =
	"usage: tinyvm-run [options] PROGRAM…   (one a vCPU; the last one serves for the rest)\n"
	"  PROGRAM  \"out:N in:N mmior:N mmiow:N rdmsr:N wrmsr:N hlt:N cpuid:N spin:BLOCKS\n"
	"            hold:MS sleep:MS\", N may be inf\n"
	"  -V N  VMs in this process      -c N  vCPUs a VM           -i 0,2,5  KVM's vCPU ids\n"
	"  -t FORMAT  thread name (\"CPU %d/KVM\")  -p 0,1  pin vCPUs to CPUs, in turn\n"
	"  -s threads|one|hop  who runs the vCPUs   -k N  exits before -s one/hop change\n"
	"  -m auto|real|user  -l N|inf  loops  -r N  user exits a second at most\n"
	"  -e MS  life  -L  make the VMs after the go  -n  go at once, ignore stdin  -I  "
	"SCHED_IDLE\n"
	"  -N N  nice  -H MS  HLT waits in the kernel; after at most MS an NMI wakes it\n"
	"Anything after -- is not read: a command line to be seen in /proc.\n";

static enum shape shape_of(const char *s)
{
	return !strcmp(s, "one") ? SHAPE_ONE : !strcmp(s, "hop") ? SHAPE_HOP : SHAPE_THREADS;
}

static enum tinyvm_mode mode_of(const char *s)
{
	return !strcmp(s, "real") ? TINYVM_REAL : !strcmp(s, "user") ? TINYVM_USER : TINYVM_AUTO;
}

static void option(struct config *c, int opt)
{
	switch (opt) {
	case 'V':
		c->vms = atoi(optarg);
		break;
	case 'c':
		c->vcpus = atoi(optarg);
		break;
	case 'i':
		c->nids = list(optarg, c->ids);
		break;
	case 'p':
		c->npins = list(optarg, c->pins);
		break;
	case 't':
		c->thread_name = optarg;
		break;
	case 's':
		c->shape = shape_of(optarg);
		break;
	case 'k':
		c->slice = atol(optarg);
		break;
	case 'm':
		c->mode = mode_of(optarg);
		break;
	case 'l':
		c->loops_set = true;
		c->loops = strcmp(optarg, "inf") ? (unsigned)atoi(optarg) : TINYVM_FOREVER;
		break;
	case 'r':
		c->rate = (unsigned)atoi(optarg);
		break;
	case 'e':
		c->life_ms = atol(optarg);
		break;
	case 'H':
		c->nmi_ms = atoi(optarg);
		break;
	case 'L':
		c->late = true;
		break;
	case 'n':
		c->now = true;
		break;
	case 'I':
		c->idle_class = true;
		break;
	case 'N':
		if (setpriority(PRIO_PROCESS, 0, atoi(optarg)))
			die("nice", -errno);
		break;
	default:
		fputs(usage, stderr);
		exit(2);
	}
}

static void parse(struct config *c, int argc, char **argv)
{
	int opt;

	*c = (struct config){.vms = 1, .vcpus = 1, .thread_name = "CPU %d/KVM", .slice = 10};
	while ((opt = getopt(argc, argv, "+V:c:i:p:t:s:k:m:l:r:e:LnIN:H:")) >= 0)
		option(c, opt);
	for (; optind < argc && strcmp(argv[optind], "--"); optind++)
		if (c->nprogram < TINYVM_MAX_VCPUS)
			c->program[c->nprogram++] = argv[optind];
	if (!c->nprogram || c->vms < 1 || c->vms > MAX_VMS || c->vcpus < 1 ||
	    c->vcpus > TINYVM_MAX_VCPUS || c->slice < 1) {
		fputs(usage, stderr);
		exit(2);
	}
}

/* A vCPU is a descriptor: a VM of a thousand needs more than there often are at first. */
static void raise_nofile(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l))
		return;
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
}

int main(int argc, char **argv)
{
	static struct job j;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	raise_nofile();
	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(&j.c, argc, argv);
	if (!j.c.late)
		start(&j);
	say_ready(&j);
	puts(j.c.now ? "go" : "go?");
	if (!j.c.now && !wait_line())
		return 0;
	if (j.c.late) {
		start(&j);
		say_ready(&j);
	}
	pthread_barrier_wait(&j.go);
	wait_end(&j);
	finish(&j);
	for (int v = 0; v < j.c.vms; v++) {
		for (int i = 0; i < j.c.vcpus; i++)
			print_counts(&j, v, i);
		tinyvm_free(j.vm[v]);
	}
	return 0;
}
