// SPDX-License-Identifier: GPL-2.0-only
/* Machine code of the tiny guests; only tinyvm.c needs it. */
#ifndef KVMTOP_TINYVM_CODE_H
#define KVMTOP_TINYVM_CODE_H

#include "tinyvm.h"

/* What a guest keeps behind its code; every member within a disp8 (127) of the first. */
struct tinyvm_data {
	uint32_t done[TINYVM_OPS];
	uint32_t loops; /* still to do */
	uint8_t stop;
};

bool tinyvm_needs_real(const struct tinyvm_program *p);

/*
 * Writes the program's code into `code`. The same bytes but for the size prefixes that real
 * mode needs. In: esi = address of struct tinyvm_data (DS), edi = MMIO address (ES).
 * Length or -E2BIG.
 */
int tinyvm_emit(const struct tinyvm_program *p, bool real, uint8_t *code, size_t size);

#endif
