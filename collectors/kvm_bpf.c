// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading and attaching the programs that count; see kvm_bpf.h.
 */
#include "kvm_bpf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf_cost.h"
#include "clock.h"
#include "event_format.h"
#include "kvm_names.h"
#include "sysroot.h"

#ifdef KVMTOP_BPF

#include "bpf_load.h"

BPF_IMAGE(kvm_count);

static const char *const program_of[EV_NR] = {
	[EV_ENTRY] = "kvmtop_entry",	[EV_EXIT] = "kvmtop_exit",
	[EV_MMIO] = "kvmtop_mmio",	[EV_PIO] = "kvmtop_pio",
	[EV_MSR] = "kvmtop_msr",	[EV_HYPERCALL] = "kvmtop_hypercall",
	[EV_USEREXIT] = "kvmtop_user",	[EV_VCPU_WAKEUP] = "kvmtop_wakeup",
	[EV_HALT_POLL] = "kvmtop_poll", [EV_FPU] = "kvmtop_fpu",
};

#define MAPS 10 /* that are mapped */
#define EARLY 64

/* ns before they were measured: of an event, and of a change of tasks. */
#define EVENT_NS 330
#define SWITCH_NS 200

struct kvm_bpf {
	struct bpf_object *object;
	struct bpf_link *link[KVM_EVENTS];
	struct bpf_link *ended, *on_switch;
	struct bpf_cost events, switches;
	uint64_t switch_id; /* sched_switch; 0: its record has another shape */
	struct ring_buffer *news, *slow;
	/* Slow exits of the epoch that has begun, which were found at the end of the last one. */
	struct kc_slow early[EARLY];
	unsigned nearly;
	struct kvm_counts counts;
	struct bpf_memory memory;
	int cpu; /* an online one: an event must be opened on some CPU, and counts on all */
	uint64_t missed[KVM_EVENTS]; /* recursion_misses, as of the last tick */
	const struct sink *sink; /* while news are told */
	bool (*several)(void *ctx, int32_t tid);
	void *ctx;
};

/* ---- before loading ---- */

static struct kc_field field(struct kvm_field f)
{
	return (struct kc_field){f.offset, f.size, f.is_signed};
}

/* -EOPNOTSUPP: two events of one type, or fields farther behind than the programs look. */
static int set_layouts(const struct kvm_format *f, struct kc_config *c)
{
	bool has[EV_NR] = {false};

	for (unsigned i = 0; i < KVM_EVENTS; i++) {
		const struct kvm_layout *l = kvm_format_layout(f, i);

		if (!l)
			continue;
		if (has[l->type] || l->need > KC_RECORD)
			return -EOPNOTSUPP;
		has[l->type] = true;
		c->layout[l->type] = (struct kc_layout){
			.key = field(l->key),
			.aux = field(l->aux),
			.dir = field(l->dir),
			.extra = field(l->extra),
			.vcpu = field(l->vcpu),
			.isa = l->isa,
			.need = (uint16_t)l->need,
			.direct = l->need % 4 == 0,
			.dir_rule = (uint8_t)l->dir_rule,
			.key_rule = (uint8_t)l->key_rule,
		};
	}
	return 0;
}

static uint32_t power_of_two(uint64_t n)
{
	uint32_t p = 64;

	while (p < n)
		p *= 2;
	return p;
}

/*
 * Room by the CPUs of the host: up to 32 vCPUs each, of about eight keys each. All of it is the
 * kernel's memory from the start: 12 MiB on two CPUs, 160 MiB on 512.
 */
static void set_sizes(struct kc_config *c, unsigned ncpu, bool few)
{
	unsigned vcpus = ncpu * 32 < 2048 ? 2048 : ncpu * 32 > 16384 ? 16384 : ncpu * 32;

	c->threads = power_of_two(vcpus);
	c->slots = few ? 64 : power_of_two(vcpus * 8);
	c->octaves = few ? 64 : power_of_two(vcpus * 12);
	c->margin = few ? 2 : ncpu + 1;
}

static int size_maps(struct bpf_object *o, const struct kc_config *c, unsigned ncpu)
{
	const struct bpf_size size[] = {
		{"threads", c->threads},
		{"slots", c->slots},
		{"counts", c->slots * 2},
		{"octaves", c->octaves},
		{"busy", ncpu},
		{"dirty_threads", c->threads * 2},
		{"free_threads", c->threads},
		{"free_slots", c->slots / KC_CHUNK},
		{"free_octaves", c->octaves},
		{"by_thread", c->threads * 2},
		{"by_vcpu", c->threads * 2},
	};

	return bpf_load_sizes(o, size, sizeof(size) / sizeof(size[0]));
}

/* An idle vCPU's exits are long, and many: they are left out where they happen. */
static void set_idle(struct kc_config *c)
{
	static const uint32_t isas[] = {ISA_VMX,   ISA_SVM, ISA_ARM64,	  ISA_S390,
					ISA_RISCV, ISA_PPC, ISA_LOONGARCH};
	unsigned n = 0;

	for (size_t i = 0; i < sizeof(isas) / sizeof(isas[0]); i++)
		for (uint64_t key = 0; key < 0x400 && n < KC_IDLE; key++) {
			/* The codes of arm64's traps are behind the bit that says so. */
			uint64_t k = key < 0x200 ? key : KVM_ARM_TRAP | (key - 0x200);

			if (kvm_names_idle(isas[i], k))
				c->idle[n++] = (struct kc_idle){.key = k, .isa = isas[i]};
		}
}

/* Programs whose tracepoint this kernel lacks are not loaded. */
static void leave_out(struct bpf_object *o, const struct kvm_format *f, bool has_switch)
{
	struct bpf_program *on_switch = bpf_object__find_program_by_name(o, "kvmtop_switch");
	bool has[EV_NR] = {false};

	if (on_switch)
		bpf_program__set_autoload(on_switch, has_switch);

	for (unsigned i = 0; i < KVM_EVENTS; i++)
		if (kvm_format_layout(f, i))
			has[kvm_events[i].type] = true;
	for (unsigned type = 0; type < EV_NR; type++) {
		struct bpf_program *p = bpf_object__find_program_by_name(o, program_of[type]);

		if (p && !has[type])
			bpf_program__set_autoload(p, false);
	}
}

/* ---- the shared memory ---- */

static void *map_memory(struct kvm_bpf *b, const char *name, size_t entry, uint32_t n)
{
	return bpf_memory_map(&b->memory, b->object, name, entry, n);
}

static int map_all(struct kvm_bpf *b)
{
	struct kvm_counts *c = &b->counts;

	c->control = map_memory(b, ".data.control", sizeof(*c->control), 1);
	c->thread = map_memory(b, "threads", sizeof(*c->thread), c->threads);
	c->slot = map_memory(b, "slots", sizeof(*c->slot), c->slots);
	c->count = map_memory(b, "counts", sizeof(*c->count), c->slots * 2);
	c->octave = map_memory(b, "octaves", sizeof(*c->octave), c->octaves);
	c->busy = map_memory(b, "busy", sizeof(*c->busy), c->cpus);
	c->dirty = map_memory(b, "dirty_threads", sizeof(*c->dirty), c->threads * 2);
	c->free[KC_POOL_THREADS] = map_memory(b, "free_threads", sizeof(*c->dirty), c->threads);
	c->free[KC_POOL_SLOTS] =
		map_memory(b, "free_slots", sizeof(*c->dirty), c->slots / KC_CHUNK);
	c->free[KC_POOL_OCTAVES] = map_memory(b, "free_octaves", sizeof(*c->dirty), c->octaves);
	return b->memory.n == MAPS ? 0 : -ENOMEM;
}

/* ---- tracepoints ---- */

static int attach(struct kvm_bpf *b, const char *name, uint64_t id, struct bpf_link **out)
{
	return bpf_load_attach(b->object, name, id, b->cpu, out);
}

int kvm_bpf_attach(struct kvm_bpf *b, unsigned event, uint64_t id)
{
	int rc = b->link[event]
			 ? 0
			 : attach(b, program_of[kvm_events[event].type], id, &b->link[event]);

	if (!rc && kvm_events[event].type == EV_FPU)
		__atomic_store_n(&b->counts.control->fpu_since, (uint64_t)clock_mono_ns(),
				 __ATOMIC_RELEASE);
	return rc;
}

bool kvm_bpf_is_attached(const struct kvm_bpf *b, unsigned event)
{
	return b->link[event];
}

void kvm_bpf_detach(struct kvm_bpf *b, unsigned event)
{
	bpf_link__destroy(b->link[event]);
	b->link[event] = NULL;
}

void kvm_bpf_kinds(struct kvm_bpf *b, bool entry_exit)
{
	/* Other kinds' pairs end with kvm_entry, whether more of them begin or not. */
	if (__atomic_load_n(&b->counts.control->entry_exit, __ATOMIC_SEQ_CST) == entry_exit)
		return;
	__atomic_fetch_add(&b->counts.control->generation, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&b->counts.control->entry_exit, entry_exit, __ATOMIC_SEQ_CST);
}

void kvm_bpf_slow(struct kvm_bpf *b, uint64_t ns)
{
	__atomic_store_n(&b->counts.control->slow_ns, ns, __ATOMIC_RELEASE);
}

void kvm_bpf_switches(struct kvm_bpf *b, bool on, const struct sink *sink)
{
	uint64_t now = 0;

	if (!on == !b->on_switch)
		return;
	if (on) {
		if (!b->switch_id || attach(b, "kvmtop_switch", b->switch_id, &b->on_switch))
			return;
		now = (uint64_t)clock_mono_ns();
	} else {
		bpf_link__destroy(b->on_switch);
		b->on_switch = NULL;
	}
	__atomic_store_n(&b->counts.control->switch_since, now, __ATOMIC_RELEASE);
	if (sink->off_told)
		sink->off_told(sink->ctx, on);
}

/* ---- all of it ---- */

static int on_news(void *ctx, void *data, size_t size)
{
	struct kvm_bpf *b = ctx;
	struct aggregate a = {.vcpu_id = -1};
	struct kc_thread *t = NULL;
	struct kc_news what;

	if (!b->sink || size < sizeof(what))
		return 0;
	memcpy(&what, data, sizeof(what));
	a.tid = (int32_t)what.tid;
	if (what.index < b->counts.threads && b->counts.thread[what.index].tid == what.tid)
		t = &b->counts.thread[what.index];
	a.pid = t ? (int32_t)t->tgid : 0;
	b->sink->aggregates(b->sink->ctx, &a, 1);
	if (t)
		t->several = b->several(b->ctx, a.tid);
	return 0;
}

static void hand_over_slow(const struct kvm_bpf *b, const struct kc_slow *s)
{
	const struct slow_exit x = {
		.begin = (int64_t)s->begin,
		.end = (int64_t)s->end,
		.key = s->key,
		.rip = s->rip,
		.user_key = s->user_key,
		.user_begin = (int64_t)s->user_begin,
		.isa = s->isa,
		.tid = (int32_t)s->tid,
		.vcpu_id = s->vcpu,
		.kind = (uint8_t)s->kind,
	};

	if (b->sink && b->sink->slow)
		b->sink->slow(b->sink->ctx, &x, 1);
}

/* Those of the epoch that runs wait for its end: then they are counted, too. */
static int on_slow(void *ctx, void *data, size_t size)
{
	struct kvm_bpf *b = ctx;
	struct kc_slow s;

	if (size < sizeof(s))
		return 0;
	memcpy(&s, data, sizeof(s));
	if (s.epoch == b->counts.control->epoch && b->nearly < EARLY)
		b->early[b->nearly++] = s;
	else
		hand_over_slow(b, &s);
	return 0;
}

/* After the counts of the epoch that ended. */
static void tell_slow(struct kvm_bpf *b, const struct sink *sink)
{
	unsigned n = b->nearly;

	b->sink = sink;
	b->nearly = 0;
	for (unsigned i = 0; i < n; i++)
		hand_over_slow(b, &b->early[i]);
	(void)ring_buffer__consume(b->slow);
	b->sink = NULL;
}

static int load(struct kvm_bpf *b, const struct kvm_format *f, uint32_t next_pid, bool few)
{
	int ncpu = libbpf_num_possible_cpus(), rc;
	struct kc_config c = {0};

	if (ncpu <= 0 || ncpu > KC_CPUS)
		return -EOPNOTSUPP;
	rc = set_layouts(f, &c);
	if (rc)
		return rc;
	set_sizes(&c, (unsigned)ncpu, few);
	set_idle(&c);
	c.next_pid = next_pid;
	rc = BPF_OPEN(kvm_count, "kvmtop_kvm", &b->object);
	if (rc)
		return rc;
	leave_out(b->object, f, b->switch_id);
	rc = size_maps(b->object, &c, (unsigned)ncpu);
	if (!rc)
		rc = bpf_load_config(b->object, &c, sizeof(c));
	if (!rc)
		rc = bpf_object__load(b->object);
	if (rc)
		return rc;
	b->counts.threads = c.threads;
	b->counts.slots = c.slots;
	b->counts.octaves = c.octaves;
	b->counts.cpus = (uint32_t)ncpu;
	rc = map_all(b);
	if (rc)
		return rc;
	kvm_counts_init(&b->counts);
	b->news = ring_buffer__new(bpf_object__find_map_fd_by_name(b->object, "news"), on_news, b,
				   NULL);
	if (!b->news)
		return -errno;
	b->slow = ring_buffer__new(bpf_object__find_map_fd_by_name(b->object, "slow"), on_slow, b,
				   NULL);
	return b->slow ? 0 : -errno;
}

static int watch_ends(struct kvm_bpf *b, const struct sysroot *root, const char *tracefs)
{
	char id[32];
	ssize_t n = sysroot_readf(root, id, sizeof(id), "%s/events/sched/sched_process_exit/id",
				  tracefs);

	return n < 0 ? (int)n : attach(b, "kvmtop_ended", strtoul(id, NULL, 10), &b->ended);
}

static void add_costs(struct kvm_bpf *b)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, b->object)
	{
		if (!strcmp(bpf_program__name(p), "kvmtop_switch"))
			bpf_cost_add(&b->switches, bpf_program__fd(p));
	}
}

int kvm_bpf_new(const struct sysroot *root, const char *tracefs, const struct kvm_format *f,
		bool few, bool (*several)(void *ctx, int32_t tid), void *ctx, struct kvm_bpf **out)
{
	struct kvm_bpf *b = calloc(1, sizeof(*b));
	uint32_t next_pid = 0, need = 0;
	const struct event_field field = {"next_pid", 4, &next_pid, false};
	int rc;

	if (!b)
		return -ENOMEM;
	if (event_format(root, tracefs, "sched", "sched_switch", &field, 1, &need, &b->switch_id))
		b->switch_id = 0;
	b->several = several;
	b->ctx = ctx;
	bpf_cost_init(&b->events, EVENT_NS);
	bpf_cost_init(&b->switches, SWITCH_NS);
	b->cpu = bpf_load_cpu(root);
	rc = b->cpu < 0 ? b->cpu : load(b, f, next_pid, few);
	if (!rc)
		rc = watch_ends(b, root, tracefs);
	if (!rc)
		add_costs(b);
	if (rc) {
		kvm_bpf_free(b);
		return rc;
	}
	*out = b;
	return 0;
}

void kvm_bpf_free(struct kvm_bpf *b)
{
	if (!b)
		return;
	for (unsigned i = 0; i < KVM_EVENTS; i++)
		bpf_link__destroy(b->link[i]);
	bpf_link__destroy(b->ended);
	bpf_link__destroy(b->on_switch);
	bpf_cost_end(&b->switches);
	ring_buffer__free(b->news);
	ring_buffer__free(b->slow);
	bpf_memory_unmap(&b->memory);
	bpf_object__close(b->object);
	free(b);
}

int kvm_bpf_fd(const struct kvm_bpf *b)
{
	return ring_buffer__epoll_fd(b->news);
}

void kvm_bpf_news(struct kvm_bpf *b, const struct sink *sink)
{
	b->sink = sink;
	(void)ring_buffer__consume(b->news);
	b->sink = NULL;
}

/* The programs for events say themselves how long they take. */
static void tell_cost(struct kvm_bpf *b, const struct kvm_counts_state *read, const struct sink *to)
{
	int64_t now = clock_mono_ns();
	const struct kvm_counts_runs *r = &read->runs;
	struct program_cost c = {.switches = r->switches};

	c.switches_ns = bpf_cost_tick(&b->switches, now, r->switches);
	c.ns = bpf_cost_sampled(&b->events, r->sampled_ns, r->samples, r->events) + c.switches_ns;
	if (to->program_cost)
		to->program_cost(to->ctx, &c);
}

/* Events that came while another program ran on that CPU: the kernel leaves ours out. */
static void tell_missed(struct kvm_bpf *b, const struct sink *sink)
{
	for (unsigned i = 0; i < KVM_EVENTS; i++) {
		struct bpf_program *p;
		struct bpf_prog_info info = {0};
		__u32 len = sizeof(info);
		struct loss_count l = {.type = kvm_events[i].type};

		if (!b->link[i])
			continue;
		p = bpf_object__find_program_by_name(b->object, program_of[kvm_events[i].type]);
		if (!p || bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &len))
			continue;
		l.n = info.recursion_misses - b->missed[i];
		b->missed[i] = info.recursion_misses;
		if (l.n)
			sink->loss_count(sink->ctx, &l);
	}
}

void kvm_bpf_tick(struct kvm_bpf *b, int64_t watermark, const struct sink *sink,
		  struct kvm_counts_state *out)
{
	kvm_bpf_news(b, sink);
	kvm_counts_read(&b->counts, watermark, sink, out);
	tell_slow(b, sink);
	tell_missed(b, sink);
	tell_cost(b, out, sink);
}

#else /* made without BPF */

int kvm_bpf_new(const struct sysroot *root, const char *tracefs, const struct kvm_format *f,
		bool few, bool (*several)(void *ctx, int32_t tid), void *ctx, struct kvm_bpf **out)
{
	(void)root;
	(void)tracefs;
	(void)f;
	(void)few;
	(void)several;
	(void)ctx;
	(void)out;
	return -ENOTSUP;
}

void kvm_bpf_free(struct kvm_bpf *b)
{
	(void)b;
}

int kvm_bpf_attach(struct kvm_bpf *b, unsigned event, uint64_t id)
{
	(void)b;
	(void)event;
	(void)id;
	return -ENOTSUP;
}

bool kvm_bpf_is_attached(const struct kvm_bpf *b, unsigned event)
{
	(void)b;
	(void)event;
	return false;
}

void kvm_bpf_detach(struct kvm_bpf *b, unsigned event)
{
	(void)b;
	(void)event;
}

void kvm_bpf_kinds(struct kvm_bpf *b, bool entry_exit)
{
	(void)b;
	(void)entry_exit;
}

void kvm_bpf_slow(struct kvm_bpf *b, uint64_t ns)
{
	(void)b;
	(void)ns;
}

void kvm_bpf_switches(struct kvm_bpf *b, bool on, const struct sink *sink)
{
	(void)b;
	(void)on;
	(void)sink;
}

int kvm_bpf_fd(const struct kvm_bpf *b)
{
	(void)b;
	return -1;
}

void kvm_bpf_news(struct kvm_bpf *b, const struct sink *sink)
{
	(void)b;
	(void)sink;
}

void kvm_bpf_tick(struct kvm_bpf *b, int64_t watermark, const struct sink *sink,
		  struct kvm_counts_state *out)
{
	(void)b;
	(void)watermark;
	(void)sink;
	*out = (struct kvm_counts_state){0};
}

#endif

/* What the kernel, or we, mean by each of them where the programs are loaded and attached. */
static const struct {
	int err;
	const char *why, *mend;
} reasons[] = {
	{EPERM, "BPF programs may not be loaded",
	 "run as root, or with CAP_BPF and CAP_PERFMON; in a container without a filter of bpf()"},
	{EACCES, "the kernel refuses these BPF programs, or the events that they are for",
	 "run as root, or with CAP_BPF and CAP_PERFMON"},
	{ENOMEM, "not enough memory", "ulimit -l and -v (hard), or LimitMEMLOCK= of the service"},
	{EMFILE, "not enough file descriptors", "ulimit -n (hard), or LimitNOFILE= of the service"},
	{ENFILE, "the host has no file descriptor left", "sysctl fs.file-max"},
	{ENOSYS, "this kernel has no bpf()", "a kernel with CONFIG_BPF_SYSCALL"},
	{EINVAL, "this kernel does not know what these BPF programs use", "a kernel >= 5.12"},
	{ENOENT, "this kernel has not all of the events that these BPF programs read",
	 "a kernel with CONFIG_TRACEPOINTS, and with KVM loaded"},
#ifdef KVMTOP_BPF
	{ENOTSUP, "these events have a shape that the programs cannot count", ""},
#else
	{ENOTSUP, "kvmtop was made without BPF", "make BPF=1"},
#endif
};

void kvm_bpf_why(int err, struct kvm_reason *out)
{
	const char *why = NULL, *mend = "";

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].err == -err) {
			why = reasons[i].why;
			mend = reasons[i].mend;
		}
	if (why)
		snprintf(out->why, sizeof(out->why), "counting in the kernel: %s", why);
	else
		snprintf(out->why, sizeof(out->why),
			 "counting in the kernel: BPF programs were not loaded: %s",
			 strerror(-err));
	snprintf(out->mend, sizeof(out->mend), "%s", mend);
}
