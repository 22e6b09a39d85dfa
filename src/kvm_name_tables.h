// SPDX-License-Identifier: GPL-2.0-only
/* The built-in value → name tables behind kvm_names.c. */
#ifndef KVMTOP_KVM_NAME_TABLES_H
#define KVMTOP_KVM_NAME_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "sample.h"

struct kvm_name {
	uint64_t value;
	const char *name;
};

struct kvm_name_table {
	const struct kvm_name *row; /* sorted by value */
	size_t n;
};

enum kvm_name_set {
	NAMES_VMX,
	NAMES_SVM,
	NAMES_ARM64,
	NAMES_S390,
	NAMES_PPC,
	NAMES_RISCV,
	NAMES_LOONGARCH,
	NAMES_USEREXIT,
	NAMES_HYPERCALL,
	NAMES_MSR,
	NAMES_PORT,
	NAMES_NR
};

extern const struct kvm_name_table kvm_builtin_names[NAMES_NR];

#endif
