// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest that reads and writes MSRs of its choice: msr-run VCPUS TIMES STEP…, a STEP being MSR
 * (read it) or MSR=VALUE (write it); all of them TIMES times. It says "ready pid=P" and a line
 * "tid=T" a vCPU, waits for a line on stdin, does them, prints "VCPU STEP ok VALUE" or "VCPU STEP
 * refused" (#GP) as the last round went, then "done", and stays until stdin ends or it gets another
 * line, for which it begins anew.
 *
 * Real-mode code of one instruction, which every KVM runs or emulates.
 */
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "vmm.h"

#define STACK 0x0800
#define WRITE 0x1000
#define READ 0x1010
#define REFUSED 0x1020
#define MEMORY 0x10000
#define VECTOR_GP 13
#define PORT_DONE 0x10
#define PORT_REFUSED 0x11
#define MAX_VCPUS 8
#define MAX_STEPS 64

struct step {
	const char *text;
	uint32_t msr;
	bool write;
	uint64_t value;
};

struct result {
	bool refused;
	uint64_t value;
};

struct vcpu {
	int fd, index;
	pid_t tid;
	struct kvm_run *run;
	struct result result[MAX_STEPS];
	pthread_t thread;
};

struct guest {
	struct vcpu vcpu[MAX_VCPUS];
	int vcpus, nsteps;
	long times;
	struct step step[MAX_STEPS];
	pthread_barrier_t barrier; /* all vCPUs and the main thread: begin, end */
	bool end;
};

struct job {
	struct guest *guest;
	struct vcpu *vcpu;
};

static void put_code(unsigned char *memory)
{
	static const unsigned char wrmsr[] = {0x0f, 0x30, 0xe6, PORT_DONE};
	static const unsigned char rdmsr[] = {0x0f, 0x32, 0xe6, PORT_DONE};
	static const unsigned char refused[] = {0xe6, PORT_REFUSED};
	const uint16_t vector[] = {REFUSED, 0};

	memcpy(memory + WRITE, wrmsr, sizeof(wrmsr));
	memcpy(memory + READ, rdmsr, sizeof(rdmsr));
	memcpy(memory + REFUSED, refused, sizeof(refused));
	memcpy(memory + VECTOR_GP * sizeof(vector), vector, sizeof(vector));
}

static void run_step(struct vcpu *v, const struct step *s, struct result *out)
{
	struct kvm_regs regs = {
		.rip = s->write ? WRITE : READ,
		.rsp = STACK,
		.rcx = s->msr,
		.rax = (uint32_t)s->value,
		.rdx = s->value >> 32,
		.rflags = 2,
	};

	must(v->fd, KVM_SET_REGS, &regs, "KVM_SET_REGS");
	while (ioctl(v->fd, KVM_RUN, 0) < 0)
		if (errno != EINTR)
			die("KVM_RUN");
	if (v->run->exit_reason != KVM_EXIT_IO || ioctl(v->fd, KVM_GET_REGS, &regs) < 0)
		die("the guest did something else");
	out->refused = v->run->io.port == PORT_REFUSED;
	out->value = regs.rdx << 32 | (uint32_t)regs.rax;
}

static void *run_vcpu(void *arg)
{
	const struct job *j = arg;
	struct guest *g = j->guest;
	struct vcpu *v = j->vcpu;

	vmm_name_thread(v->index);
	v->tid = gettid();
	pthread_barrier_wait(&g->barrier);
	for (;;) {
		pthread_barrier_wait(&g->barrier);
		if (g->end)
			return NULL;
		for (long i = 0; i < g->times; i++)
			for (int k = 0; k < g->nsteps; k++)
				run_step(v, &g->step[k], &v->result[k]);
		pthread_barrier_wait(&g->barrier);
	}
}

static void print_results(const struct guest *g)
{
	for (int i = 0; i < g->vcpus; i++)
		for (int k = 0; k < g->nsteps; k++) {
			const struct result *r = &g->vcpu[i].result[k];

			if (r->refused)
				printf("%d %s refused\n", i, g->step[k].text);
			else
				printf("%d %s ok 0x%llx\n", i, g->step[k].text,
				       (unsigned long long)r->value);
		}
	printf("done\n");
}

static void parse(struct guest *g, char **text, int n)
{
	if (n > MAX_STEPS) {
		errno = E2BIG;
		die("steps");
	}
	for (; g->nsteps < n; g->nsteps++) {
		struct step *s = &g->step[g->nsteps];
		char *end;

		s->text = text[g->nsteps];
		s->msr = (uint32_t)strtoul(s->text, &end, 0);
		s->write = *end == '=';
		if (s->write)
			s->value = strtoull(end + 1, NULL, 0);
	}
}

static void make(struct guest *g)
{
	struct vmm vmm = vmm_new(MEMORY);

	put_code(vmm.memory);
	for (int i = 0; i < g->vcpus; i++) {
		struct vcpu *v = &g->vcpu[i];

		v->index = i;
		v->fd = vmm_add_vcpu(&vmm, i, &v->run);
		vmm_set_real_mode(v->fd, 0);
	}
}

int main(int argc, char **argv)
{
	static struct guest g;
	static struct job job[MAX_VCPUS];
	char line[64];

	if (argc < 4 || (g.vcpus = atoi(argv[1])) < 1 || g.vcpus > MAX_VCPUS ||
	    (g.times = atol(argv[2])) < 1) {
		fprintf(stderr, "usage: msr-run VCPUS TIMES MSR[=VALUE]...\n");
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	parse(&g, argv + 3, argc - 3);
	make(&g);
	pthread_barrier_init(&g.barrier, NULL, (unsigned)g.vcpus + 1);
	for (int i = 0; i < g.vcpus; i++) {
		job[i] = (struct job){&g, &g.vcpu[i]};
		if (pthread_create(&g.vcpu[i].thread, NULL, run_vcpu, &job[i]))
			die("pthread_create");
	}
	pthread_barrier_wait(&g.barrier);
	printf("ready pid=%d\n", getpid());
	for (int i = 0; i < g.vcpus; i++)
		printf("tid=%d\n", g.vcpu[i].tid);
	while (fgets(line, sizeof(line), stdin)) {
		pthread_barrier_wait(&g.barrier);
		pthread_barrier_wait(&g.barrier);
		print_results(&g);
	}
	g.end = true;
	pthread_barrier_wait(&g.barrier);
	for (int i = 0; i < g.vcpus; i++)
		pthread_join(g.vcpu[i].thread, NULL);
	return 0;
}
