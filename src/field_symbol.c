// SPDX-License-Identifier: GPL-2.0-only
/* Fields of symbols and of the guest code that makes exits: one row a symbol, or page without a
 * name. */
#include "field_tables.h"

#define S struct snap_symbol

static const char *const domain_names[DOMAIN_NR] = {
	[DOMAIN_HOST_KERNEL] = "host-kernel",
	[DOMAIN_HOST_USER] = "host-user",
	[DOMAIN_GUEST_KERNEL] = "guest-kernel",
	[DOMAIN_GUEST_USER] = "guest-user",
};

const char *field_domain_name(enum ip_domain d)
{
	return (unsigned)d < DOMAIN_NR ? domain_names[d] : "";
}

static struct cell symbol_vm(const struct snapshot *s, const void *row, bool total)
{
	int32_t vm = ((const S *)row)->vm;

	(void)total;
	return (struct cell){.text = vm == SNAP_OTHER ? "(other)" : field_vm_name(s, vm)};
}

static struct cell symbol_vcpu(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.v = field_vcpu_number(s, ((const S *)row)->vcpu)};
}

static struct cell symbol_domain(const struct snapshot *s, const void *row, bool total)
{
	const S *x = row;

	(void)s;
	(void)total;
	return (struct cell){.text = x->other ? "" : field_domain_name(x->key.domain),
			     .mark = x->guessed ? '~' : 0};
}

static struct cell symbol_domain_guessed(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	(void)total;
	return (struct cell){.text = ((const S *)row)->guessed ? "guessed" : ""};
}

static struct cell symbol_samples(const struct snapshot *s, const void *row, bool total)
{
	const S *x = row;

	(void)s;
	return (struct cell){.v = value_known((double)(total ? x->samples_total : x->samples))};
}

static struct cell symbol_pct(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	return (struct cell){.v = total ? ((const S *)row)->pct_total : ((const S *)row)->pct};
}

static struct cell symbol_caller(const struct snapshot *s, const void *row, bool total)
{
	struct snap_caller caller[SNAP_CALLERS];

	(void)s;
	return (struct cell){.text = snap_callers(row, total, caller) ? caller[0].name : ""};
}

static struct cell symbol_caller_pct(const struct snapshot *s, const void *row, bool total)
{
	const S *x = row;
	uint64_t all = total ? x->samples_total : x->samples;
	struct snap_caller caller[SNAP_CALLERS];
	uint64_t n;

	(void)s;
	if (!all || !snap_callers(x, total, caller))
		return (struct cell){.v = value_pending()};
	n = total ? caller[0].samples_total : caller[0].samples;
	return (struct cell){.v = value_known(100.0 * (double)n / (double)all)};
}

GET_TEXT(symbol_name, S, name)
GET_TEXT(symbol_module, S, module)
GET_TEXT(symbol_reason, S, reason)

/* clang-format off */
static const struct field symbol_fields[] = {
	{"vm", "VM", "name of the VM; empty: all VMs together; (other): what is no VM", UNIT_TEXT, 12, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, symbol_vm},
	{"vcpu", "vCPU", "the VMM's number of the vCPU; empty for the whole VM", UNIT_NUMBER, 4, FIELD_SORT_UP, 0, 0,
	 symbol_vcpu},
	{"domain", "DOMAIN", "host-kernel, host-user (the VMM), guest-kernel or guest-user", UNIT_TEXT, 13, FIELD_SORT_UP, 0, 0,
	 symbol_domain},
	{"symbol", "SYMBOL", "the function that was running; where it has no name, where it is by page: [guest 0x…]; other: what did not fit",
	 UNIT_TEXT, 30, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, symbol_name},
	{"module", "MODULE", "the module or file that it is in, empty for the kernel itself", UNIT_TEXT, 14,
	 FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, symbol_module},
	{"samples", "SAMPLES", "how often it was running when a sample was taken", UNIT_COUNT, 7, FIELD_TOTAL, 0, 0,
	 symbol_samples},
	{"pct", "SHARE", "its share of all samples of the VM, of the vCPU, of all VMs or of what is no VM (idle CPUs left out)", UNIT_PCT, 6, FIELD_TOTAL, 0, 0,
	 symbol_pct},
	{"domain_guessed", "GUESSED", "guessed: whether it was guest kernel or user is the host kernel's word only, which may be wrong",
	 UNIT_TEXT, 7, FIELD_SORT_UP, 0, 0, symbol_domain_guessed},
	{"reason", "REASON", "why it has no name", UNIT_TEXT, 30, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0,
	 symbol_reason},
	{"caller", "CALLER", "what called it most often, of a VM's guest symbols; empty where the host's kernel does not tell guests' call chains", UNIT_TEXT, 24,
	 FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, symbol_caller},
	{"caller_pct", "%CALLER", "in how many of its samples that was what called it", UNIT_PCT, 7, FIELD_TOTAL, 0, 0,
	 symbol_caller_pct},
};
/* clang-format on */

const struct field_list field_list_symbol = FIELD_LIST("symbol", symbol_fields, S);

/* --- guest code that makes exits --- */
#define X struct snap_code

static struct cell code_vm(const struct snapshot *s, const void *row, bool total)
{
	(void)total;
	return (struct cell){.text = field_vm_name(s, ((const X *)row)->vm)};
}

static struct cell code_domain(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	(void)total;
	return (struct cell){.text = field_domain_name(((const X *)row)->key.domain)};
}

static struct cell code_count(const struct snapshot *s, const void *row, bool total)
{
	const X *x = row;
	double n = (double)(total ? x->total : x->count);
	uint8_t low = total ? x->low_total : x->low;

	(void)s;
	return (struct cell){.v = low ? value_partial(n, (enum value_why)low) : value_known(n)};
}

static struct cell code_pct(const struct snapshot *s, const void *row, bool total)
{
	(void)s;
	return (struct cell){.v = total ? ((const X *)row)->pct_total : ((const X *)row)->pct};
}

GET_TEXT(code_exit, X, exit)
GET_TEXT(code_name, X, name)
GET_TEXT(code_module, X, module)
GET_TEXT(code_why, X, why)

/* clang-format off */
static const struct field code_fields[] = {
	{"vm", "VM", "name of the VM", UNIT_TEXT, 12, FIELD_SORT_UP | FIELD_UNTRUSTED, 0, 0, code_vm},
	{"key", "EXIT", "the kernel's name of the exit", UNIT_TEXT, 20, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0,
	 code_exit},
	{"symbol", "SYMBOL", "the guest's function that made the exit; where it has no name, where it is by page", UNIT_TEXT, 30,
	 FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, code_name},
	{"module", "MODULE", "the guest's module that it is in, empty for its kernel itself", UNIT_TEXT, 14,
	 FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, code_module},
	{"domain", "DOMAIN", "guest-kernel or guest-user", UNIT_TEXT, 13, FIELD_SORT_UP, 0, 0, code_domain},
	{"count", "COUNT", "exits of this reason that it made", UNIT_COUNT, 7, FIELD_TOTAL, 0, 0, code_count},
	{"pct", "SHARE", "its share of the VM's exits of this reason", UNIT_PCT, 6, FIELD_TOTAL, 0, 0, code_pct},
	{"reason", "REASON", "why it has no name", UNIT_TEXT, 30, FIELD_SORT_UP | FIELD_PROSE | FIELD_UNTRUSTED, 0, 0, code_why},
};
/* clang-format on */

const struct field_list field_list_code = FIELD_LIST("exit-code", code_fields, X);
