// SPDX-License-Identifier: GPL-2.0-only
/*
 * The slide of a KASLR kernel (slide.h).
 *
 * Where neither kallsyms nor VMCOREINFO tell it, the guest's own exits do: an exit for HLT, CPUID
 * or MSR happens at that very instruction. Of the places to which x86 may move its kernel only
 * one has the right instruction at every address, as soon as there are a few different ones.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "slide.h"

/* x86-64: multiples of CONFIG_PHYSICAL_ALIGN in KERNEL_IMAGE_SIZE. */
#define STEP (2u << 20)
#define STEPS 512
#define PLACES 32 /* different addresses that are looked at */
#define MIN_BITS 24 /* of agreement: 512 places guess right by chance once in 2^15 */

struct opcode {
	uint8_t len, byte[2], mask[2];
	uint8_t bits; /* that it says: how rare it is among any bytes */
};

static const struct opcode opcodes[] = {
	[EVIDENCE_HLT] = {1, {0xf4, 0}, {0xff, 0}, 8},
	[EVIDENCE_CPUID] = {2, {0x0f, 0xa2}, {0xff, 0xff}, 16},
	[EVIDENCE_MSR] = {2, {0x0f, 0x30}, {0xff, 0xfd}, 15}, /* wrmsr, rdmsr */
	/* in, out with a number or dx: e4 e5 e6 e7 ec ed ee ef */
	[EVIDENCE_IO] = {1, {0xe4, 0}, {0xf4, 0}, 5},
};

static bool has_opcode(const struct symbols_evidence *e)
{
	return (unsigned)e->kind < sizeof(opcodes) / sizeof(opcodes[0]) && opcodes[e->kind].len;
}

/* Different ones, of the kernel's half. */
static size_t distinct(const struct symbols_evidence *e, size_t n, struct symbols_evidence *out)
{
	size_t kept = 0;

	for (size_t i = 0; i < n && kept < PLACES; i++) {
		bool known = !has_opcode(&e[i]) || !(e[i].addr >> 63);

		for (size_t k = 0; k < kept && !known; k++)
			known = out[k].addr == e[i].addr;
		if (!known)
			out[kept++] = e[i];
	}
	return kept;
}

static bool stands_there(struct elf_file *vmlinux, const struct symbols_evidence *e, uint64_t slide)
{
	const struct opcode *o = &opcodes[e->kind];
	const uint8_t *code;

	if (elf_code_at(vmlinux, e->addr - slide, &code) < o->len)
		return false;
	for (unsigned i = 0; i < o->len; i++)
		if ((code[i] & o->mask[i]) != (o->byte[i] & o->mask[i]))
			return false;
	return true;
}

/* Agreement of all that is known with one place, in bits; those of the code that disagree. */
static unsigned agreement(struct elf_file *vmlinux, const struct symbols_evidence *e, size_t n,
			  uint64_t slide, unsigned *against)
{
	unsigned bits = 0;

	*against = 0;
	for (size_t i = 0; i < n; i++) {
		if (stands_there(vmlinux, &e[i], slide))
			bits += opcodes[e[i].kind].bits;
		else
			++*against;
	}
	return bits;
}

static int slide_of_exits(struct elf_file *vmlinux, const struct slide_facts *known,
			  uint64_t *slide)
{
	struct symbols_evidence e[PLACES];
	size_t n = distinct(known->evidence, known->nevidence, e);
	unsigned best = 0, second = 0, against, allowed;

	if (n < 2)
		return -ENOENT;
	/* Some exits are of modules and of code that patched itself. */
	allowed = (unsigned)n / 4;
	for (unsigned k = 0; k < STEPS; k++) {
		unsigned bits = agreement(vmlinux, e, n, (uint64_t)k * STEP, &against);

		if (against > allowed)
			continue;
		if (bits > best) {
			second = best;
			best = bits;
			*slide = (uint64_t)k * STEP;
		} else if (bits > second) {
			second = bits;
		}
	}
	return best >= MIN_BITS && best >= second + MIN_BITS / 2 ? 0 : -ENOENT;
}

int slide_find(struct elf_file *vmlinux, const struct elf_facts *elf,
	       const struct slide_facts *known, uint64_t *slide)
{
	const struct vmcoreinfo *v = known->vmcoreinfo;

	*slide = 0;
	if (v && v->id.len && elf->id.len && !build_id_equal(&v->id, &elf->id))
		return -EXDEV;
	if (known->stext && elf->stext) {
		*slide = known->stext - elf->stext;
		/* Kernels move by whole pages. */
		return *slide & 0xfff ? -EXDEV : 0;
	}
	if (v && v->has_offset) {
		*slide = v->offset;
		return 0;
	}
	if (v && v->stext && elf->stext) {
		*slide = v->stext - elf->stext;
		return 0;
	}
	if (known->fixed)
		return 0;
	return elf->machine == EM_X86_64 ? slide_of_exits(vmlinux, known, slide) : -ENOENT;
}
