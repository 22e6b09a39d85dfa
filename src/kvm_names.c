// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of exit reasons, MSRs, ports, hypercalls and KVM_EXIT_*.
 *
 * The pairs of a running kernel's `print fmt:` go before the built-in ones, so that a
 * new kernel's reasons are named without a release of ours.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvm_name_tables.h"
#include "kvm_names.h"
#include "symbolic.h"

#define VMX_FAILED_VMENTRY 0x80000000u

struct kvm_names {
	struct symbolic loaded[NAMES_NR]; /* sorted by value */
};

struct kvm_names *kvm_names_new(void)
{
	return calloc(1, sizeof(struct kvm_names));
}

static void free_sets(struct symbolic *set)
{
	for (int i = 0; i < NAMES_NR; i++)
		symbolic_free(&set[i]);
}

void kvm_names_free(struct kvm_names *n)
{
	if (!n)
		return;
	free_sets(n->loaded);
	free(n);
}

/* ---- which table a __print_symbolic() of an event's format fills ---- */

struct choice {
	enum kvm_name_set set;
	uint64_t under; /* or-ed to each value */
};

static bool arg_has(const struct symbolic_call *c, const char *word)
{
	return memmem(c->arg, c->arg_len, word, strlen(word)) != NULL;
}

/*
 * x86: "(REC->isa == 1) ? __print_symbolic(…) : __print_symbolic(…)": the first belongs
 * to the isa of the condition, the next without a condition of its own to the other.
 */
static bool choose_x86(const struct symbolic_call *c, int *last_isa, struct choice *out)
{
	const char *cond = memmem(c->before, c->before_len, "isa == ", 7);
	int isa;

	if (cond)
		isa = cond[7] == '1' ? ISA_VMX : cond[7] == '2' ? ISA_SVM : ISA_NONE;
	else
		isa = *last_isa == ISA_VMX ? ISA_SVM : *last_isa == ISA_SVM ? ISA_VMX : ISA_NONE;
	*last_isa = isa;
	if (isa == ISA_NONE)
		return false;
	out->set = isa == ISA_VMX ? NAMES_VMX : NAMES_SVM;
	return true;
}

static bool choose_exit(const struct symbolic_call *c, int *last_isa, struct choice *out)
{
	if (arg_has(c, "exit_reason"))
		return choose_x86(c, last_isa, out);
	if (arg_has(c, "esr_ec")) {
		*out = (struct choice){NAMES_ARM64, KVM_ARM_TRAP};
		return true;
	}
	if (arg_has(c, "REC->ret"))
		out->set = NAMES_ARM64;
	else if (arg_has(c, "scause"))
		out->set = NAMES_RISCV;
	else if (arg_has(c, "icptcode"))
		out->set = NAMES_S390;
	else if (arg_has(c, "trap"))
		out->set = NAMES_PPC;
	else if (arg_has(c, "REC->reason"))
		out->set = NAMES_LOONGARCH;
	else
		return false;
	return true;
}

static bool choose(const char *event, const struct symbolic_call *c, int *last_isa,
		   struct choice *out)
{
	out->under = 0;
	if (strcmp(event, "kvm_userspace_exit"))
		return choose_exit(c, last_isa, out);
	out->set = NAMES_USEREXIT;
	return true;
}

static int load_sets(struct symbolic *set, const char *event, const char *text, size_t len)
{
	struct symbolic_call call = {0};
	struct choice ch;
	int last_isa = ISA_NONE, rc, found = 0;

	while ((rc = symbolic_next(&call, text, len)) > 0) {
		if (!choose(event, &call, &last_isa, &ch))
			continue;
		rc = symbolic_parse(&call, ch.under, &set[ch.set]);
		if (rc)
			return rc;
		found++;
	}
	if (rc)
		return rc;
	return found ? 0 : -EINVAL;
}

int kvm_names_load(struct kvm_names *n, const char *event, const char *format, size_t len)
{
	static const char mark[] = "print fmt:";
	struct symbolic set[NAMES_NR] = {0};
	const char *fmt = memmem(format, len, mark, strlen(mark));
	int rc;

	if (!fmt)
		return -EINVAL;
	rc = load_sets(set, event, fmt, len - (size_t)(fmt - format));
	if (rc) {
		free_sets(set);
		return rc;
	}
	for (int i = 0; i < NAMES_NR; i++) {
		if (!set[i].n)
			continue;
		symbolic_sort(&set[i]);
		symbolic_free(&n->loaded[i]);
		n->loaded[i] = set[i];
	}
	return 0;
}

/* ---- looking up ---- */

static const char *builtin(enum kvm_name_set set, uint64_t value)
{
	const struct kvm_name_table *t = &kvm_builtin_names[set];
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->row[mid].value == value)
			return t->row[mid].name;
		if (t->row[mid].value < value)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

static const char *find(const struct kvm_names *n, enum kvm_name_set set, uint64_t value)
{
	const char *name = n ? symbolic_find(&n->loaded[set], value) : NULL;

	return name ? name : builtin(set, value);
}

/* NAMES_NR: an isa that nobody knows. */
static enum kvm_name_set isa_set(uint32_t isa)
{
	switch (isa) {
	case ISA_VMX:
		return NAMES_VMX;
	case ISA_SVM:
		return NAMES_SVM;
	case ISA_ARM64:
		return NAMES_ARM64;
	case ISA_S390:
		return NAMES_S390;
	case ISA_PPC:
		return NAMES_PPC;
	case ISA_RISCV:
		return NAMES_RISCV;
	case ISA_LOONGARCH:
		return NAMES_LOONGARCH;
	default:
		return NAMES_NR;
	}
}

static void exit_key(const struct kvm_names *n, uint32_t isa, uint64_t key, char *buf, size_t size)
{
	enum kvm_name_set set = isa_set(isa);
	const char *flag = "", *name;
	uint64_t value = key;

	if (isa == ISA_VMX) {
		value = key & 0xffff;
		flag = key & VMX_FAILED_VMENTRY ? " FAILED_VMENTRY" : "";
	} else if (isa == ISA_SVM) {
		value = key & UINT32_MAX;
	}
	name = set == NAMES_NR ? NULL : find(n, set, value);
	if (name)
		snprintf(buf, size, "%s%s", name, flag);
	else
		snprintf(buf, size, "0x%" PRIx64 "%s", value, flag);
}

static void user_key(const struct kvm_names *n, uint64_t key, char *buf, size_t size)
{
	const char *name = find(n, NAMES_USEREXIT, key);

	if (key & KVM_USEREXIT_ERROR) {
		const char *err = strerrorname_np((int)(key & 0xffff));

		if (err)
			snprintf(buf, size, "error %s", err);
		else
			snprintf(buf, size, "error %u", (unsigned)(key & UINT32_MAX));
	} else if (name) {
		snprintf(buf, size, "%s", name);
	} else {
		snprintf(buf, size, "0x%" PRIx64, key);
	}
}

static const char *halt_name(enum ev_dir dir)
{
	return dir == DIR_READ ? "polled" : dir == DIR_WRITE ? "waited" : "poll size";
}

const char *kvm_names_key(const struct kvm_names *n, enum kvm_kind kind, uint32_t isa, uint64_t key,
			  enum ev_dir dir, char *buf, size_t size)
{
	const char *name;

	switch (kind) {
	case KIND_VMEXIT:
		exit_key(n, isa, key, buf, size);
		break;
	case KIND_IOPORT:
		snprintf(buf, size, "0x%" PRIx64 ":%s", key, dir == DIR_WRITE ? "POUT" : "PIN");
		break;
	case KIND_MMIO:
	case KIND_MSR:
		snprintf(buf, size, "0x%" PRIx64 ":%c", key, dir == DIR_WRITE ? 'W' : 'R');
		break;
	case KIND_HYPERCALL:
		name = find(n, NAMES_HYPERCALL, key);
		if (name)
			snprintf(buf, size, "%s", name);
		else
			snprintf(buf, size, "0x%" PRIx64, key);
		break;
	case KIND_USEREXIT:
		user_key(n, key, buf, size);
		break;
	case KIND_HALT:
		snprintf(buf, size, "%s", halt_name(dir));
		break;
	default:
		snprintf(buf, size, "0x%" PRIx64, key);
	}
	return buf;
}

/* The page of a local APIC or an I/O APIC: on every PC at the same address. */
static const char *mmio_note(uint64_t gpa)
{
	static const struct kvm_name lapic[] = {
		{0x20, "APIC ID"},     {0x80, "APIC TPR"},   {0xb0, "APIC EOI"},
		{0xd0, "APIC LDR"},    {0xf0, "APIC SIVR"},  {0x300, "APIC ICR"},
		{0x310, "APIC ICR2"},  {0x320, "APIC LVTT"}, {0x380, "APIC TMICT"},
		{0x390, "APIC TMCCT"},
	};

	if ((gpa & ~0xfffULL) == 0xfec00000)
		return "I/O APIC";
	if ((gpa & ~0xfffULL) == 0xfed00000)
		return "HPET";
	if ((gpa & ~0xfffULL) != 0xfee00000)
		return "";
	for (size_t i = 0; i < sizeof(lapic) / sizeof(lapic[0]); i++)
		if (lapic[i].value == (gpa & 0xfff))
			return lapic[i].name;
	return "APIC";
}

const char *kvm_names_note(const struct kvm_names *n, enum kvm_kind kind, uint64_t key)
{
	const char *name = NULL;

	if (kind == KIND_MSR)
		name = find(n, NAMES_MSR, key);
	else if (kind == KIND_IOPORT)
		name = find(n, NAMES_PORT, key);
	else if (kind == KIND_MMIO)
		name = mmio_note(key);
	return name ? name : "";
}

bool kvm_names_idle(uint32_t isa, uint64_t reason)
{
	switch (isa) {
	case ISA_VMX:
		return reason == 12 || reason == 36; /* HLT, MWAIT; a failed entry is neither */
	case ISA_SVM:
		return reason == 0x78 || reason == 0x8b ||
		       reason == 0xa6; /* hlt, mwait, idle-halt */
	case ISA_ARM64:
		return reason == (KVM_ARM_TRAP | 0x01); /* WFx */
	case ISA_S390:
		return reason == 0x1c; /* wait state */
	default:
		return false;
	}
}

bool kvm_names_idle_user(uint64_t reason)
{
	return reason == 5; /* KVM_EXIT_HLT */
}
