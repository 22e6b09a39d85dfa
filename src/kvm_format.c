// SPDX-License-Identifier: GPL-2.0-only
/*
 * Event formats and decoding. One row of kvm_events[] is one tracepoint; one row of
 * layouts[] is one shape of it: which fields are key, number of the vCPU and so on.
 */
#include <byteswap.h>
#include <errno.h>
#include <event-parse.h>
#include <stdlib.h>
#include <string.h>

#include "kvm_format.h"

const struct kvm_event_name kvm_events[KVM_EVENTS] = {
	{"kvm", "kvm_entry", EV_ENTRY},
	{"kvm", "kvm_exit", EV_EXIT},
	{"kvm", "kvm_mmio", EV_MMIO},
	{"kvm", "kvm_pio", EV_PIO},
	{"kvm", "kvm_msr", EV_MSR},
	{"kvm", "kvm_hypercall", EV_HYPERCALL},
	{"kvm", "kvm_userspace_exit", EV_USEREXIT},
	{"kvm", "kvm_vcpu_wakeup", EV_VCPU_WAKEUP},
	{"kvm", "kvm_halt_poll_ns", EV_HALT_POLL},
	{"kvm", "kvm_s390_sie_enter", EV_ENTRY},
	{"kvm", "kvm_s390_sie_exit", EV_EXIT},
	{"kvm_hv", "kvm_guest_enter", EV_ENTRY},
	{"kvm_hv", "kvm_guest_exit", EV_EXIT},
	{"kvm", "kvm_enter", EV_ENTRY}, /* LoongArch */
	{"kvm", "kvm_fpu", EV_FPU},
};

struct layout {
	enum ev_type type;
	const char *key, *aux, *dir, *extra; /* extra: isa, esr_ec or errno, by key_rule */
	enum kvm_dir_rule dir_rule;
	enum kvm_key_rule key_rule;
	uint32_t isa;
};

/* Tried in order; the first whose key and (where named) dir and extra are there is taken. */
static const struct layout layouts[] = {
	{EV_ENTRY, NULL, NULL, NULL, NULL, DIR_RULE_NONE, KEY_NONE, ISA_NONE},
	{EV_EXIT, "exit_reason", "guest_rip", NULL, "isa", DIR_RULE_NONE, KEY_ISA, ISA_NONE},
	{EV_EXIT, "ret", "vcpu_pc", NULL, "esr_ec", DIR_RULE_NONE, KEY_ARM64, ISA_ARM64},
	{EV_EXIT, "scause", "sepc", NULL, NULL, DIR_RULE_NONE, KEY_PLAIN, ISA_RISCV},
	{EV_EXIT, "icptcode", NULL, NULL, NULL, DIR_RULE_NONE, KEY_PLAIN, ISA_S390},
	{EV_EXIT, "trap", "pc", NULL, NULL, DIR_RULE_NONE, KEY_PLAIN, ISA_PPC},
	{EV_EXIT, "reason", "pc", NULL, NULL, DIR_RULE_NONE, KEY_PLAIN, ISA_LOONGARCH},
	{EV_MMIO, "gpa", NULL, "type", NULL, DIR_RULE_MMIO, KEY_PLAIN, ISA_NONE},
	{EV_PIO, "port", NULL, "rw", NULL, DIR_RULE_FLAG, KEY_PLAIN, ISA_NONE},
	{EV_MSR, "ecx", NULL, "write", NULL, DIR_RULE_FLAG, KEY_PLAIN, ISA_NONE},
	{EV_HYPERCALL, "nr", NULL, NULL, NULL, DIR_RULE_NONE, KEY_PLAIN, ISA_NONE},
	{EV_USEREXIT, "reason", "errno", NULL, "errno", DIR_RULE_NONE, KEY_USER, ISA_NONE},
	{EV_VCPU_WAKEUP, NULL, "ns", "waited", NULL, DIR_RULE_FLAG, KEY_NONE, ISA_NONE},
	{EV_FPU, "load", NULL, NULL, NULL, DIR_RULE_NONE, KEY_PLAIN, ISA_NONE},
	{EV_HALT_POLL, NULL, "new", NULL, NULL, DIR_RULE_NONE, KEY_NONE, ISA_NONE},
};

struct decoder {
	int id; /* 0: not loaded */
	struct kvm_layout l;
};

struct kvm_format {
	struct kvm_format_ids ids;
	bool swapped;
	struct decoder event[KVM_EVENTS];
};

struct kvm_format *kvm_format_new(void)
{
	return calloc(1, sizeof(struct kvm_format));
}

void kvm_format_free(struct kvm_format *f)
{
	if (!f)
		return;
	free(f->ids.by_id);
	free(f);
}

void kvm_format_swapped(struct kvm_format *f, bool swapped)
{
	f->swapped = swapped;
}

/* ---- reading a format ---- */

static bool take_field(struct tep_event *ev, const char *name, struct kvm_field *out,
		       uint32_t *need)
{
	struct tep_format_field *field = tep_find_any_field(ev, name);

	if (!field || field->offset < 0 || field->offset > UINT16_MAX)
		return false;
	if (field->size != 1 && field->size != 2 && field->size != 4 && field->size != 8)
		return false;
	*out = (struct kvm_field){(uint16_t)field->offset, (uint8_t)field->size,
				  (field->flags & TEP_FIELD_IS_SIGNED) != 0};
	if (*need < out->offset + (uint32_t)out->size)
		*need = out->offset + (uint32_t)out->size;
	return true;
}

static bool take_layout(struct tep_event *ev, const struct layout *l, struct kvm_layout *d)
{
	*d = (struct kvm_layout){
		.type = l->type,
		.dir_rule = l->dir_rule,
		.key_rule = l->key_rule,
		.isa = l->isa,
		.need = sizeof(uint16_t), /* common_type */
	};
	if (!take_field(ev, "common_pid", &d->pid, &d->need))
		return false;
	if (l->key && !take_field(ev, l->key, &d->key, &d->need))
		return false;
	if (l->dir && !take_field(ev, l->dir, &d->dir, &d->need))
		return false;
	if (l->extra && !take_field(ev, l->extra, &d->extra, &d->need))
		return false;
	if (l->aux)
		(void)take_field(ev, l->aux, &d->aux, &d->need);
	if (!take_field(ev, "vcpu_id", &d->vcpu, &d->need) && l->isa == ISA_S390)
		(void)take_field(ev, "id", &d->vcpu, &d->need);
	return true;
}

static bool choose_layout(struct tep_event *ev, enum ev_type type, struct kvm_layout *d)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].type == type && take_layout(ev, &layouts[i], d))
			return true;
	return false;
}

static uint16_t id_in_raw(const struct kvm_format *f, int id)
{
	return f->swapped ? bswap_16((uint16_t)id) : (uint16_t)id;
}

static int note_id(struct kvm_format *f, unsigned event, uint16_t id)
{
	uint8_t *by_id;

	if (id >= f->ids.n) {
		by_id = realloc(f->ids.by_id, (size_t)id + 1);
		if (!by_id)
			return -ENOMEM;
		memset(by_id + f->ids.n, 0, (size_t)id + 1 - f->ids.n);
		f->ids.by_id = by_id;
		f->ids.n = id + 1u;
	}
	if (f->event[event].id)
		f->ids.by_id[id_in_raw(f, f->event[event].id)] = 0;
	f->ids.by_id[id] = (uint8_t)(event + 1);
	return 0;
}

/* Total where libtraceevent is not: it reads a text that ends before its length is up. */
static struct tep_event *parse(struct tep_handle *tep, const char *system, const char *text,
			       size_t len)
{
	struct tep_event *ev = NULL;
	char *copy = strndup(text, len);

	if (!copy)
		return NULL;
	if (tep_parse_format(tep, &ev, copy, strlen(copy), system) && !ev)
		ev = NULL;
	free(copy);
	return ev;
}

/*
 * The `print fmt:` line is not given to libtraceevent: offsets do not need it, and its
 * parser of expressions is the part that fails on new kernels.
 */
static size_t fields_only(const char *text, size_t len)
{
	const char *print = memmem(text, len, "\nprint fmt:", 11);

	return print ? (size_t)(print - text) + 1 : len;
}

int kvm_format_load(struct kvm_format *f, unsigned event, const char *text, size_t len)
{
	struct tep_handle *tep = tep_alloc();
	struct decoder d = {0};
	struct tep_event *ev;
	int rc = -EINVAL;

	if (!tep)
		return -ENOMEM;
	tep_set_loglevel(TEP_LOG_NONE); /* it would print into the screen */
	ev = parse(tep, kvm_events[event].system, text, fields_only(text, len));
	if (ev && ev->id > 0 && ev->id <= UINT16_MAX &&
	    choose_layout(ev, kvm_events[event].type, &d.l)) {
		d.id = ev->id;
		d.l.swapped = f->swapped;
		rc = note_id(f, event, id_in_raw(f, d.id));
		if (!rc) {
			f->event[event] = d;
			rc = d.id;
		}
	}
	tep_free(tep);
	return rc;
}

int kvm_format_id(const struct kvm_format *f, unsigned event)
{
	return event < KVM_EVENTS ? f->event[event].id : 0;
}

const struct kvm_layout *kvm_format_layout(const struct kvm_format *f, unsigned event)
{
	return kvm_format_id(f, event) ? &f->event[event].l : NULL;
}

/* ---- decoding ---- */

static inline uint64_t load(const uint8_t *raw, struct kvm_field s, bool swapped)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (s.size) {
	case 8:
		memcpy(&v8, raw + s.offset, sizeof(v8));
		return swapped ? bswap_64(v8) : v8;
	case 4:
		memcpy(&v4, raw + s.offset, sizeof(v4));
		v4 = swapped ? bswap_32(v4) : v4;
		return s.is_signed ? (uint64_t)(int64_t)(int32_t)v4 : v4;
	case 2:
		memcpy(&v2, raw + s.offset, sizeof(v2));
		v2 = swapped ? bswap_16(v2) : v2;
		return s.is_signed ? (uint64_t)(int64_t)(int16_t)v2 : v2;
	case 1:
		return s.is_signed ? (uint64_t)(int64_t)(int8_t)raw[s.offset] : raw[s.offset];
	default:
		return 0;
	}
}

/* VMX: 16 bits of reason and the flag of a failed entry; the other flags are no reasons. */
static inline void exit_x86(const struct kvm_layout *d, const uint8_t *raw, bool swapped,
			    struct sample *s)
{
	s->isa = (uint32_t)load(raw, d->extra, swapped);
	if (s->isa == ISA_VMX)
		s->key &= 0x8000ffff;
	else
		s->key &= UINT32_MAX;
}

static inline void exit_arm64(const struct kvm_layout *d, const uint8_t *raw, bool swapped,
			      struct sample *s)
{
	enum { ARM_EXCEPTION_TRAP = 2 };

	s->key &= 0x7fffffff; /* bit 31: an SError is pending as well */
	if (s->key == ARM_EXCEPTION_TRAP)
		s->key = KVM_ARM_TRAP | (load(raw, d->extra, swapped) & 0xffff);
}

static inline void exit_user(const struct kvm_layout *d, const uint8_t *raw, bool swapped,
			     struct sample *s)
{
	int32_t err = (int32_t)load(raw, d->extra, swapped);

	if (err < 0 && err != -EINTR) /* KVM_RUN failed: its reason is an old one */
		s->key = KVM_USEREXIT_ERROR | (uint32_t)-err;
}

static inline uint8_t direction(const struct kvm_layout *d, const uint8_t *raw, bool swapped)
{
	uint64_t v = load(raw, d->dir, swapped);

	if (d->dir_rule == DIR_RULE_FLAG)
		return v ? DIR_WRITE : DIR_READ;
	return v == 0 ? DIR_UNSATISFIED : v == 1 ? DIR_READ : v == 2 ? DIR_WRITE : DIR_NONE;
}

const struct kvm_format_ids *kvm_format_ids(const struct kvm_format *f)
{
	return &f->ids;
}

int kvm_format_event(const struct kvm_format *f, const uint8_t *raw, uint32_t len)
{
	return kvm_format_event_of(&f->ids, raw, len);
}

/* Apart for each byte order, so that live events are not asked for theirs field by field. */
static inline __attribute__((always_inline)) void
decode(const struct kvm_layout *d, const uint8_t *raw, bool swapped, struct sample *s)
{
	s->type = (uint8_t)d->type;
	s->isa = d->isa;
	s->tid = (int32_t)load(raw, d->pid, swapped);
	s->vcpu_id = d->vcpu.size ? (int32_t)load(raw, d->vcpu, swapped) : -1;
	s->key = load(raw, d->key, swapped);
	s->aux = load(raw, d->aux, swapped);
	s->dir = d->dir_rule == DIR_RULE_NONE ? DIR_NONE : direction(d, raw, swapped);
	if (d->key_rule == KEY_ISA)
		exit_x86(d, raw, swapped, s);
	else if (d->key_rule == KEY_ARM64)
		exit_arm64(d, raw, swapped, s);
	else if (d->key_rule == KEY_USER)
		exit_user(d, raw, swapped, s);
}

bool kvm_format_decode(const struct kvm_format *f, const uint8_t *raw, uint32_t len,
		       struct sample *s)
{
	const struct kvm_layout *d;
	int event = kvm_format_event_of(&f->ids, raw, len);

	if (event < 0)
		return false;
	d = &f->event[event].l;
	if (len < d->need)
		return false;
	if (d->swapped)
		decode(d, raw, true, s);
	else
		decode(d, raw, false, s);
	return true;
}

enum kvm_kind kvm_kind_of(enum ev_type type)
{
	switch (type) {
	case EV_MMIO:
		return KIND_MMIO;
	case EV_PIO:
		return KIND_IOPORT;
	case EV_MSR:
		return KIND_MSR;
	case EV_HYPERCALL:
		return KIND_HYPERCALL;
	case EV_USEREXIT:
		return KIND_USEREXIT;
	case EV_VCPU_WAKEUP:
	case EV_HALT_POLL:
		return KIND_HALT;
	case EV_FPU:
		return KIND_NR;
	default:
		return KIND_VMEXIT;
	}
}
