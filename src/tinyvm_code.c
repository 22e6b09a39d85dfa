// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes the machine code of the tiny guests from their list of steps.
 *
 * The encodings are chosen so that 16-bit and 64-bit code differ in prefixes only:
 * 32-bit operands and 32-bit (64-bit) addresses by [esi + disp8]. No stack is used.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tinyvm_code.h"

struct emit {
	uint8_t *code;
	size_t len, size;
	bool real;
};

enum { OPSIZE = 1, ADDRSIZE = 2 };

static void bytes(struct emit *e, const void *b, size_t n)
{
	if (e->len + n <= e->size)
		memcpy(e->code + e->len, b, n);
	e->len += n; /* beyond size: -E2BIG at the end */
}

/* One instruction; the prefixes make 16-bit code use 32-bit operands or addresses. */
static void ins(struct emit *e, int prefix, const void *b, size_t n)
{
	if (e->real && (prefix & OPSIZE))
		bytes(e, "\x66", 1);
	if (e->real && (prefix & ADDRSIZE))
		bytes(e, "\x67", 1);
	bytes(e, b, n);
}

#define INS(e, prefix, str) ins(e, prefix, str, sizeof(str) - 1)

static void imm32(struct emit *e, uint32_t v)
{
	bytes(e, &v, sizeof(v));
}

/* eax 0, ecx 1, edx 2, ebp 5 */
static void mov_reg(struct emit *e, unsigned reg, uint32_t v)
{
	uint8_t op = (uint8_t)(0xb8 + reg);

	ins(e, OPSIZE, &op, 1);
	imm32(e, v);
}

/* `op` (with its modrm) on [esi + offset]. */
static void on_data(struct emit *e, int prefix, uint8_t op, uint8_t modrm, size_t offset)
{
	uint8_t b[3] = {op, modrm, (uint8_t)offset};

	ins(e, prefix | ADDRSIZE, b, 3);
}

/* A near jump to `to`; returns where its distance stands, for patch(). */
static size_t jump(struct emit *e, const char *op, size_t n, size_t to)
{
	ins(e, OPSIZE, op, n);
	imm32(e, (uint32_t)(to - (e->len + 4)));
	return e->len - 4;
}

static void patch(struct emit *e, size_t at, size_t to)
{
	uint32_t d = (uint32_t)(to - (at + 4));

	if (at + 4 <= e->size)
		memcpy(e->code + at, &d, sizeof(d));
}

#define JMP "\xe9", 1
#define JNE "\x0f\x85", 2

/* out dx, eax: the value tells the VMM how long to sleep. */
static void out32(struct emit *e, uint32_t port, uint32_t value)
{
	mov_reg(e, 2, port);
	mov_reg(e, 0, value);
	INS(e, OPSIZE, "\xef");
}

static void spin_block(struct emit *e)
{
	size_t top;

	mov_reg(e, 1, TINYVM_SPIN_BLOCK);
	top = e->len;
	INS(e, OPSIZE, "\xff\xc9"); /* dec ecx */
	jump(e, JNE, top);
}

static void sleep_ms(struct emit *e, uint32_t ms)
{
	if (!e->real) {
		out32(e, TINYVM_PORT_SLEEP, ms);
		return;
	}
	mov_reg(e, 0, ms);
	INS(e, 0, "\xf4"); /* hlt */
}

static void access_once(struct emit *e, const struct tinyvm_step *s)
{
	switch (s->op) {
	case TINYVM_OUT:
		mov_reg(e, 2, TINYVM_PORT_OUT);
		INS(e, 0, "\xee"); /* out dx, al */
		break;
	case TINYVM_IN:
		mov_reg(e, 2, TINYVM_PORT_IN);
		INS(e, 0, "\xec"); /* in al, dx */
		break;
	case TINYVM_MMIO_READ:
		INS(e, OPSIZE | ADDRSIZE, "\x26\x8b\x07"); /* mov eax, es:[edi] */
		break;
	case TINYVM_MMIO_WRITE:
		INS(e, OPSIZE | ADDRSIZE, "\x26\x89\x07"); /* mov es:[edi], eax */
		break;
	case TINYVM_RDMSR:
		mov_reg(e, 1, TINYVM_MSR);
		INS(e, 0, "\x0f\x32");
		break;
	case TINYVM_WRMSR:
		mov_reg(e, 1, TINYVM_MSR);
		mov_reg(e, 0, 0);
		mov_reg(e, 2, 0);
		INS(e, 0, "\x0f\x30");
		break;
	case TINYVM_HLT:
		mov_reg(e, 0, 0); /* sleep 0 ms */
		INS(e, 0, "\xf4");
		break;
	case TINYVM_CPUID:
		mov_reg(e, 0, 0);
		INS(e, 0, "\x0f\xa2");
		break;
	case TINYVM_SPIN:
		spin_block(e);
		break;
	case TINYVM_HOLD:
		out32(e, TINYVM_PORT_HOLD, s->n);
		break;
	case TINYVM_SLEEP:
		sleep_ms(e, s->n);
		break;
	case TINYVM_OPS:
		break;
	}
}

/* Leaves to the end when the VMM asks for it; returns the jump to be patched. */
static size_t leave_if_stopped(struct emit *e)
{
	on_data(e, 0, 0x80, 0x7e, offsetof(struct tinyvm_data, stop)); /* cmp byte [], 0 */
	bytes(e, "\0", 1);
	return jump(e, JNE, 0);
}

static size_t step(struct emit *e, const struct tinyvm_step *s)
{
	bool timed = s->op == TINYVM_HOLD || s->op == TINYVM_SLEEP;
	size_t top, stop;

	if (!timed)
		mov_reg(e, 5, s->n);
	top = e->len;
	access_once(e, s);
	on_data(e, OPSIZE, 0xff, 0x46, s->op * sizeof(uint32_t)); /* inc dword [] */
	stop = leave_if_stopped(e);
	if (timed)
		return stop;
	if (s->n == TINYVM_FOREVER) {
		jump(e, JMP, top);
	} else {
		INS(e, OPSIZE, "\xff\xcd"); /* dec ebp */
		jump(e, JNE, top);
	}
	return stop;
}

bool tinyvm_needs_real(const struct tinyvm_program *p)
{
	for (size_t i = 0; i < p->nsteps; i++) {
		enum tinyvm_op op = p->step[i].op;

		if (op == TINYVM_RDMSR || op == TINYVM_WRMSR || op == TINYVM_HLT)
			return true;
	}
	return false;
}

int tinyvm_emit(const struct tinyvm_program *p, bool real, uint8_t *code, size_t size)
{
	struct emit e = {.code = code, .size = size, .real = real};
	size_t stop[TINYVM_MAX_STEPS];

	_Static_assert(sizeof(struct tinyvm_data) < 128, "reachable by disp8");
	if (p->nsteps > TINYVM_MAX_STEPS)
		return -E2BIG;
	for (size_t i = 0; i < p->nsteps; i++)
		stop[i] = step(&e, &p->step[i]);
	if (p->loops == TINYVM_FOREVER) {
		jump(&e, JMP, 0);
	} else {
		on_data(&e, OPSIZE, 0xff, 0x4e, offsetof(struct tinyvm_data, loops)); /* dec */
		jump(&e, JNE, 0);
	}
	for (size_t i = 0; i < p->nsteps; i++)
		patch(&e, stop[i], e.len);
	out32(&e, TINYVM_PORT_DONE, 0);
	INS(&e, 0, "\xeb\xfe"); /* jmp $: never reached, the VMM stops at the port */
	return e.len <= size ? (int)e.len : -E2BIG;
}

static const char *const op_name[TINYVM_OPS] = {
	[TINYVM_OUT] = "out",	       [TINYVM_IN] = "in",	 [TINYVM_MMIO_READ] = "mmior",
	[TINYVM_MMIO_WRITE] = "mmiow", [TINYVM_RDMSR] = "rdmsr", [TINYVM_WRMSR] = "wrmsr",
	[TINYVM_HLT] = "hlt",	       [TINYVM_CPUID] = "cpuid", [TINYVM_SPIN] = "spin",
	[TINYVM_HOLD] = "hold",	       [TINYVM_SLEEP] = "sleep",
};

const char *tinyvm_op_name(enum tinyvm_op op)
{
	return op < TINYVM_OPS ? op_name[op] : "";
}

static int parse_step(const char *s, size_t len, struct tinyvm_step *out)
{
	const char *colon = memchr(s, ':', len);
	size_t name = colon ? (size_t)(colon - s) : len;
	unsigned long n = 1;
	char *end;
	int op;

	for (op = 0; op < TINYVM_OPS; op++)
		if (strlen(op_name[op]) == name && !memcmp(op_name[op], s, name))
			break;
	if (op == TINYVM_OPS)
		return -EINVAL;
	if (colon && len - name - 1 == 3 && !memcmp(colon + 1, "inf", 3)) {
		n = TINYVM_FOREVER;
	} else if (colon) {
		n = strtoul(colon + 1, &end, 10);
		if (end != s + len || !n || n > UINT32_MAX)
			return -EINVAL;
	}
	*out = (struct tinyvm_step){.op = (enum tinyvm_op)op, .n = (uint32_t)n};
	return 0;
}

int tinyvm_parse(const char *text, struct tinyvm_program *p)
{
	p->nsteps = 0;
	p->loops = 1;
	for (const char *s = text + strspn(text, " ,"); *s; s += strspn(s, " ,")) {
		size_t len = strcspn(s, " ,");

		if (p->nsteps == TINYVM_MAX_STEPS)
			return -E2BIG;
		if (parse_step(s, len, &p->step[p->nsteps]))
			return -EINVAL;
		p->nsteps++;
		s += len;
	}
	return p->nsteps ? 0 : -EINVAL;
}
