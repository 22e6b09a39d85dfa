// SPDX-License-Identifier: GPL-2.0-only
/* From addresses to symbols (engine_symbols.h). */
#include "engine_symbols.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inventory.h"
#include "model.h"
#include "symbols.h"
#include "symtab.h"

#define BATCH 128
#define PAGE_BITS 12
#define TOP_BIT (1ull << 63)
#define KERNEL_REACH (1ull << 31) /* its code, and that of modules, is within (-mcmodel=kernel) */
/* Addresses of a guest's kernel that are held against its symbols, an interval. */
#define CHECKED 64
#define LEFT 16 /* exits of it that are, too */
#define EARLY 16384 /* samples that wait for symbols: some 8 s of two CPUs */

/* What is known of one VM's code. */
struct vm_symbols {
	struct symsource *guest, *process;
	struct guest_vm vm; /* as it was asked for; strings are ours */
	char *name, *uuid;
	bool halves; /* the guest's kernel is in the upper half of 64 bits: below is user space */
	struct symbols_evidence seen[CHECKED]; /* of the interval's samples of its kernel */
	unsigned nseen; /* how many there were */
	uint64_t chance; /* the state of pick() */
	struct symbols_evidence left[LEFT]; /* where it left guest mode, a few in the interval */
	unsigned nleft;
	unsigned misses, user_misses; /* of the interval: samples that no symbol covers */
};

struct engine_symbols {
	struct inventory *inv;
	struct model *model;
	struct symbols *symbols;
	struct symsource *host;
	struct symbol_namer namer;
	unsigned host_misses;
	bool checks_exits, wants_exits; /* of some VM: engine_symbols_wants_exits() */
	char why[2 * SYMBOLS_TEXT + 8]; /* what guest_reason() said last */
	struct symbol_hit hit[BATCH];
	size_t nhit;
	struct ip_sample *early; /* of this interval, whose symbols are being read; EARLY of them */
	size_t nearly;
};

/* ---- one VM ---- */

static void close_sources(struct vm_symbols *v)
{
	symsource_close(v->guest);
	symsource_close(v->process);
	v->guest = v->process = NULL;
	v->halves = false;
	v->nseen = v->nleft = 0;
}

static void vm_free(void *ctx, struct inv_vm *vm)
{
	struct vm_symbols *v = vm->cookie[INV_COOKIE_SYMBOLS];

	(void)ctx;
	vm->cookie[INV_COOKIE_SYMBOLS] = NULL;
	if (!v)
		return;
	close_sources(v);
	free(v->name);
	free(v->uuid);
	free(v);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* A VM is found before its name is: its symbols go by the name. */
static void follow_name(struct vm_symbols *v, const struct inv_vm *vm)
{
	if (v->vm.pid == vm->pid && same(v->name, vm->name) && same(v->uuid, vm->uuid))
		return;
	close_sources(v);
	if (inventory_set(&v->name, vm->name) || inventory_set(&v->uuid, vm->uuid))
		return; /* the old name stays; tried again at the next sample */
	v->vm = (struct guest_vm){.name = v->name, .uuid = v->uuid, .pid = vm->pid};
}

static struct vm_symbols *vm_symbols(struct inv_vm *vm)
{
	struct vm_symbols *v = vm->cookie[INV_COOKIE_SYMBOLS];

	if (!v)
		v = vm->cookie[INV_COOKIE_SYMBOLS] = calloc(1, sizeof(*v));
	if (v)
		follow_name(v, vm);
	return v;
}

/* All of the guest's kernel lies in the upper half: so says its own symbol table. */
static bool in_upper_half(const struct symmap *m)
{
	const struct symmap_part *part;
	size_t n = m ? symmap_parts(m, &part) : 0;

	for (size_t i = 0; i < n; i++)
		if (!(part[i].lo & TOP_BIT))
			return false;
	return n > 0;
}

/* ---- resolving ---- */

static enum no_symbol reason_of(const struct symsource *src)
{
	switch (src ? symsource_status(src)->state : SYMBOLS_LOADING) {
	case SYMBOLS_LOADING:
		return SYM_LOADING;
	case SYMBOLS_NONE:
		return SYM_NO_SOURCE;
	case SYMBOLS_REFUSED:
		return SYM_NO_TABLE;
	case SYMBOLS_OK:
	case SYMBOLS_PARTIAL:
		break;
	}
	return SYM_OUTSIDE;
}

static struct symbol_key page_key(uint64_t ip, uint8_t domain, enum no_symbol reason)
{
	return (struct symbol_key){
		.value = ip >> PAGE_BITS, .domain = domain, .reason = (uint8_t)reason};
}

/* The page, and the module or file that it is in where that is known. */
static struct symbol_key page_in(const struct symsource *src, uint64_t ip, uint8_t domain)
{
	struct symbol_key k = page_key(ip, domain, reason_of(src));
	struct symbol sym;

	if (src && !symsource_lookup(src, ip, &sym) && sym.module && sym.module[0])
		k.table = sym.table;
	return k;
}

/* True: a symbol of this source is there. */
static bool look_up(const struct symsource *src, uint64_t ip, uint8_t domain, struct symbol_key *k)
{
	struct symbol sym;

	if (!src || !symsource_lookup(src, ip, &sym) || !sym.table)
		return false;
	*k = (struct symbol_key){.value = sym.index, .table = sym.table, .domain = domain};
	return true;
}

/*
 * Which of n things comes to mind: as good as by chance. Samples come sorted by what they have in
 * common, and those that are kept shall be as all are.
 */
static unsigned pick(struct vm_symbols *v, unsigned n)
{
	v->chance = v->chance * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((v->chance >> 33) % n);
}

static void remember(struct vm_symbols *v, const struct ip_sample *s, bool found)
{
	for (uint32_t i = 0; i < s->n; i++) {
		unsigned at = v->nseen++;

		if (at >= CHECKED)
			at = pick(v, v->nseen);
		if (at < CHECKED)
			v->seen[at] =
				(struct symbols_evidence){.addr = s->ip, .kind = EVIDENCE_SAMPLE};
	}
	v->misses += !found;
}

/*
 * Whether what a chain has as caller can be one. What was built without frame pointers has
 * something else in that register, most often the address of data, or of its program's.
 */
static bool can_call(const struct ip_sample *s, uint8_t domain)
{
	if (!s->caller || (s->caller ^ s->ip) & TOP_BIT)
		return false;
	return domain != DOMAIN_GUEST_KERNEL || s->caller - s->ip + KERNEL_REACH < 2 * KERNEL_REACH;
}

/* What called it, of the same level: nothing else is in a guest's chain. */
static void resolve_caller(const struct vm_symbols *v, const struct ip_sample *s,
			   struct symbol_hit *h)
{
	if (!can_call(s, h->key.domain))
		return;
	h->called = true;
	if (look_up(v->guest, s->caller - 1, DOMAIN_GUEST_KERNEL, &h->caller)) /* within its call */
		return;
	h->caller = h->key.domain == DOMAIN_GUEST_USER
			    ? page_key(s->caller, h->key.domain, SYM_USER)
			    : page_in(v->guest, s->caller, h->key.domain);
}

/*
 * Guest kernel or user: by the address where that decides. The upper half is never user space on
 * 64 bits; the lower half is where the guest's own symbols say that its kernel lies above. Else
 * the record's word is all there is.
 */
static void resolve_guest(struct engine_symbols *e, struct vm_symbols *v, const struct ip_sample *s,
			  struct symbol_hit *h)
{
	bool upper = s->ip & TOP_BIT, found;

	if (!v->guest)
		v->guest = symbols_guest(e->symbols, &v->vm);
	found = look_up(v->guest, s->ip, DOMAIN_GUEST_KERNEL, &h->key);
	/* One that waits for its symbols comes again. */
	if (upper && (found || reason_of(v->guest) != SYM_LOADING))
		remember(v, s, found);
	if (found)
		return;
	if (upper || (!v->halves && s->domain == DOMAIN_GUEST_KERNEL))
		h->key = page_in(v->guest, s->ip, DOMAIN_GUEST_KERNEL);
	else
		h->key = page_key(s->ip, DOMAIN_GUEST_USER, SYM_USER);
	h->guessed = !upper && !v->halves;
}

static void resolve_user(struct engine_symbols *e, struct vm_symbols *v, const struct ip_sample *s,
			 struct symbol_hit *h)
{
	if (!v->process)
		v->process = symbols_process(e->symbols, v->vm.pid);
	if (look_up(v->process, s->ip, DOMAIN_HOST_USER, &h->key))
		return;
	v->user_misses++;
	h->key = page_in(v->process, s->ip, DOMAIN_HOST_USER);
}

static void resolve_kernel(struct engine_symbols *e, const struct ip_sample *s,
			   struct symbol_hit *h)
{
	if (!e->host)
		e->host = symbols_host(e->symbols);
	if (look_up(e->host, s->ip, DOMAIN_HOST_KERNEL, &h->key))
		return;
	e->host_misses++;
	h->key = page_in(e->host, s->ip, DOMAIN_HOST_KERNEL);
}

static struct inv_thread *thread_of(struct engine_symbols *e, const struct ip_sample *s)
{
	struct inv_thread *t = s->tid > 0 ? inventory_thread(e->inv, s->tid) : NULL;

	if (!t && s->tid > 0)
		t = inventory_ended_thread(e->inv, s->tid);
	/* Nothing but a vCPU is in guest mode: a VM that nobody has found yet. */
	if (!t && s->tid > 0 && DOMAIN_IS_GUEST(s->domain))
		t = inventory_provisional(e->inv, s->tid, s->pid);
	return t;
}

static void resolve(struct engine_symbols *e, const struct ip_sample *s, struct symbol_hit *h)
{
	struct inv_thread *t = thread_of(e, s);
	struct vm_symbols *v = t ? vm_symbols(t->vm) : NULL;

	*h = (struct symbol_hit){.thread = t, .n = s->n};
	if (s->domain == DOMAIN_HOST_KERNEL) {
		h->idle = s->tid == 0;
		if (!h->idle)
			resolve_kernel(e, s, h);
	} else if (!v) {
		h->key = page_key(s->ip, s->domain, SYM_USER);
	} else if (s->domain == DOMAIN_HOST_USER) {
		resolve_user(e, v, s, h);
	} else {
		resolve_guest(e, v, s, h);
		resolve_caller(v, s, h);
	}
}

static void flush(struct engine_symbols *e)
{
	model_hits(e->model, e->hit, e->nhit);
	e->nhit = 0;
}

/* Waits for its symbols, as long as there is room. */
static bool keep_early(struct engine_symbols *e, const struct ip_sample *s)
{
	if (!e->early)
		e->early = malloc(EARLY * sizeof(*e->early));
	if (!e->early || e->nearly == EARLY)
		return false;
	e->early[e->nearly++] = *s;
	return true;
}

static void take(struct engine_symbols *e, const struct ip_sample *s, bool wait)
{
	struct symbol_hit *h = &e->hit[e->nhit];

	resolve(e, s, h);
	if (wait && h->key.reason == SYM_LOADING && keep_early(e, s))
		return;
	if (++e->nhit == BATCH)
		flush(e);
}

/* Those that waited, with their symbols; wait: what has none yet goes on waiting. */
static void take_early(struct engine_symbols *e, bool wait)
{
	size_t n = e->nearly;

	e->nearly = 0; /* what is kept again goes to a place that has been read */
	for (size_t i = 0; i < n; i++) {
		const struct ip_sample s = e->early[i];

		take(e, &s, wait);
	}
	flush(e);
	if (!e->nearly) {
		free(e->early);
		e->early = NULL;
	}
}

void engine_symbols_ips(void *ctx, const struct ip_sample *s, size_t n)
{
	struct engine_symbols *e = ctx;

	for (size_t i = 0; i < n; i++)
		take(e, &s[i], true);
	flush(e);
}

void engine_symbols_begin(struct engine_symbols *e)
{
	if (!e->host)
		e->host = symbols_host(e->symbols);
}

/* ---- do they still fit? ---- */

/* Exits that happen at one instruction; false: of another kind. */
static bool exit_kind(uint32_t isa, uint64_t reason, enum evidence_kind *kind)
{
	static const struct {
		uint8_t vmx, svm;
		enum evidence_kind kind;
	} rows[] = {
		{12, 0x78, EVIDENCE_HLT}, {10, 0x72, EVIDENCE_CPUID}, {31, 0x7c, EVIDENCE_MSR},
		{32, 0x7c, EVIDENCE_MSR}, {30, 0x7b, EVIDENCE_IO},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		*kind = rows[i].kind;
		if ((isa == ISA_VMX && reason == rows[i].vmx) ||
		    (isa == ISA_SVM && reason == rows[i].svm))
			return true;
	}
	return false;
}

static bool has_left(const struct vm_symbols *v, uint64_t ip)
{
	for (size_t i = 0; i < v->nleft; i++)
		if (v->left[i].addr == ip)
			return true;
	return false;
}

/*
 * One new address of a batch is enough, and only its first few are looked at: there are many
 * batches, and this is where events go by at full rate. While a slide is to be found all are: an
 * idle guest makes few exits, nearly all of them at the same two places.
 */
void engine_symbols_exits(void *ctx, const struct sample *s, size_t n)
{
	struct engine_symbols *e = ctx;
	enum evidence_kind kind;

	for (size_t i = 0; i < n && (i < LEFT || e->wants_exits); i++) {
		const struct inv_thread *t;
		struct vm_symbols *v;

		if (s[i].type != EV_EXIT || !(s[i].aux & TOP_BIT) ||
		    !exit_kind(s[i].isa, s[i].key, &kind))
			continue;
		t = inventory_thread(e->inv, s[i].tid);
		v = t ? t->vm->cookie[INV_COOKIE_SYMBOLS] : NULL;
		if (!v || !v->guest || v->nleft == LEFT || has_left(v, s[i].aux))
			continue;
		v->left[v->nleft++] = (struct symbols_evidence){.addr = s[i].aux, .kind = kind};
		if (!e->wants_exits)
			return;
	}
}

static void check_vm(struct vm_symbols *v, int64_t now)
{
	if (v->process && v->user_misses)
		symsource_refresh(v->process, now);
	if (v->guest) {
		bool changed = symsource_evidence(v->guest, v->left, v->nleft);

		changed |= symsource_evidence(v->guest, v->seen,
					      v->nseen < CHECKED ? v->nseen : CHECKED);
		if (changed)
			v->halves = in_upper_half(symsource_map(v->guest));
		if (v->misses)
			symsource_refresh(v->guest, now);
	}
	v->misses = v->user_misses = v->nseen = v->nleft = 0;
}

/* There are symbols that an exit may contradict, or whose slide it may tell. */
static bool can_check(const struct symsource *src)
{
	return symsource_map(src) || symsource_wants_exits(src);
}

void engine_symbols_tick(struct engine_symbols *e, int64_t now_ns)
{
	take_early(e, false);
	if (e->host && e->host_misses)
		symsource_refresh(e->host, now_ns);
	e->host_misses = 0;
	e->checks_exits = e->wants_exits = false;
	for (struct inv_vm *vm = inventory_first(e->inv); vm; vm = vm->next) {
		struct vm_symbols *v = vm->cookie[INV_COOKIE_SYMBOLS];

		if (!v)
			continue;
		check_vm(v, now_ns);
		e->checks_exits |= v->guest && can_check(v->guest);
		e->wants_exits |= v->guest && symsource_wants_exits(v->guest);
	}
}

bool engine_symbols_checks_exits(const struct engine_symbols *e)
{
	return e->checks_exits;
}

bool engine_symbols_wants_exits(const struct engine_symbols *e)
{
	return e->wants_exits;
}

void engine_symbols_ready(struct engine_symbols *e)
{
	if (!symbols_poll(e->symbols))
		return;
	for (struct inv_vm *vm = inventory_first(e->inv); vm; vm = vm->next) {
		struct vm_symbols *v = vm->cookie[INV_COOKIE_SYMBOLS];

		if (v && v->guest)
			v->halves = in_upper_half(symsource_map(v->guest));
	}
	take_early(e, true);
}

/* ---- names, for the model ---- */

static bool name_of(void *ctx, const struct symbol_key *k, const char **name, const char **module)
{
	const struct engine_symbols *e = ctx;
	uint32_t index = k->reason == SYM_NAMED ? (uint32_t)k->value : UINT32_MAX;
	struct symbol sym;
	bool found = symbols_symbol(e->symbols, k->table, index, &sym);

	*name = sym.name;
	*module = sym.module ? sym.module : "";
	return found && sym.name;
}

static void find_code(void *ctx, const struct inv_vm *vm, uint64_t addr, struct symbol_key *k)
{
	struct engine_symbols *e = ctx;
	struct inv_vm *of = inventory_vm(e->inv, vm->id);
	struct vm_symbols *v = of ? vm_symbols(of) : NULL;
	const struct ip_sample s = {.ip = addr, .n = 1, .domain = DOMAIN_GUEST_USER};
	struct symbol_hit h = {0};

	if (!v)
		return;
	resolve_guest(e, v, &s, &h);
	*k = h.key;
}

static const char *status_text(const struct symsource *src, const char *else_text)
{
	const struct symbols_status *st = src ? symsource_status(src) : NULL;

	return st && st->why[0] ? st->why : else_text;
}

static const struct symsource *source_of(const struct engine_symbols *e, const struct inv_vm *vm,
					 uint8_t domain)
{
	const struct vm_symbols *v = vm ? vm->cookie[INV_COOKIE_SYMBOLS] : NULL;

	if (domain == DOMAIN_HOST_KERNEL)
		return e->host;
	if (!v)
		return NULL;
	return DOMAIN_IS_GUEST(domain) ? v->guest : v->process;
}

static const char *reason_text(void *ctx, const struct inv_vm *vm, const struct symbol_key *k)
{
	const struct engine_symbols *e = ctx;
	const struct symsource *src = source_of(e, vm, k->domain);

	switch ((enum no_symbol)k->reason) {
	case SYM_NAMED:
		return "its symbols are no longer loaded";
	case SYM_USER:
		return DOMAIN_IS_GUEST(k->domain) ? "guest user space: its programs are not known"
						  : "of a process that is no VM";
	case SYM_LOADING:
		return "its symbols are being read";
	case SYM_OUTSIDE:
		return "no symbol is at this address";
	case SYM_NO_TABLE:
		return status_text(src, "its symbols cannot be used");
	case SYM_NO_SOURCE:
	case SYM_NO_FILE:
		break;
	}
	return status_text(src, "there are no symbols of it");
}

static bool guest_reason(void *ctx, const struct inv_vm *vm, const char **why, const char **mend)
{
	const struct vm_symbols *v = vm->cookie[INV_COOKIE_SYMBOLS];
	const struct symbols_status *st = v && v->guest ? symsource_status(v->guest) : NULL;
	struct engine_symbols *e = ctx;

	if (!st || st->state == SYMBOLS_OK)
		return false;
	snprintf(e->why, sizeof(e->why), "%s%s%s", st->source, st->source[0] ? ": " : "",
		 st->state == SYMBOLS_LOADING ? "being read" : st->why);
	*why = e->why;
	*mend = st->mend;
	return true;
}

/* ---- life ---- */

int engine_symbols_new(struct sysroot *root, const struct guest_files *files, struct inventory *inv,
		       struct model *model, struct engine_symbols **out)
{
	struct engine_symbols *e = calloc(1, sizeof(*e));
	const struct inv_observer observer = {.ctx = e, .vm_free = vm_free};
	int rc;

	if (!e)
		return -ENOMEM;
	e->inv = inv;
	e->model = model;
	rc = symbols_new(root, files, &e->symbols);
	if (!rc)
		rc = inventory_observe(inv, &observer);
	if (rc) {
		symbols_free(e->symbols);
		free(e);
		return rc;
	}
	e->namer = (struct symbol_namer){.ctx = e,
					 .name = name_of,
					 .find = find_code,
					 .reason = reason_text,
					 .guest = guest_reason};
	model_set_namer(model, &e->namer);
	*out = e;
	return 0;
}

void engine_symbols_free(struct engine_symbols *e)
{
	if (!e)
		return;
	model_set_namer(e->model, NULL);
	for (struct inv_vm *vm = inventory_first(e->inv); vm; vm = vm->next)
		vm_free(e, vm);
	inventory_unobserve(e->inv, e);
	symsource_close(e->host);
	symbols_free(e->symbols);
	free(e->early);
	free(e);
}

int engine_symbols_fd(const struct engine_symbols *e)
{
	return symbols_fd(e->symbols);
}
