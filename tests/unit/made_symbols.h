// SPDX-License-Identifier: GPL-2.0-only
/* The symbols of made_snapshot.c, which includes it once: their keys, names and callers. */
#ifndef KVMTOP_MADE_SYMBOLS_H
#define KVMTOP_MADE_SYMBOLS_H

#include "snapshot.h"

static const struct {
	uint8_t domain;
	const char *name, *module;
	double share;
} symbol_rows[] = {
	{DOMAIN_GUEST_KERNEL, "native_queued_spin_lock_slowpath", "", 38},
	{DOMAIN_GUEST_USER, NULL, "", 21.5},
	{DOMAIN_GUEST_KERNEL, "virtqueue_get_buf_ctx", "virtio_ring", 14},
	{DOMAIN_HOST_KERNEL, "vmx_vcpu_run", "kvm_intel", 11.2},
	{DOMAIN_GUEST_KERNEL, "copy_user_enhanced_fast_string", "", 6.1},
	{DOMAIN_HOST_USER, "virtio_blk_handle_vq", "qemu-system-x86_64", 3.4},
	{DOMAIN_HOST_KERNEL, "do_sys_poll", "", 2.2},
};
#define SYMBOLS_EACH (sizeof(symbol_rows) / sizeof(symbol_rows[0]) + 1) /* with `other` */

/* What has no name is by page, of all VMs together one row. */
static inline struct symbol_key made_symbol_key(size_t i, bool no_symbols, bool of_all)
{
	bool user = symbol_rows[i].domain == DOMAIN_GUEST_USER;
	struct symbol_key key = {.value = i, .table = 1, .domain = symbol_rows[i].domain};

	if (user || (no_symbols && key.domain == DOMAIN_GUEST_KERNEL)) {
		key.table = 0;
		key.value = user ? 0x7f12a4c31 : 0xffffffff81000u + i;
		key.reason = user ? SYM_USER : SYM_NO_SOURCE;
	}
	return of_all ? symbol_key_of_all(&key) : key;
}

static inline const char *made_symbol_name(struct snapshot *s, size_t i,
					   const struct symbol_key *key)
{
	if (key->table)
		return symbol_rows[i].name;
	return key->value ? snapshot_printf(s, "[guest 0x%llx]", key->value * 4096ull) : "[guest]";
}

/* Of the first symbol; some of its samples have no caller, as of functions without a frame. */
static inline void add_callers(struct snap_symbol *x, bool any)
{
	static const char *const name[SNAP_CALLERS] = {"_raw_spin_lock", "do_raw_spin_lock",
						       "[guest 0xffffffff9c600000]", ""};
	static const unsigned pct[SNAP_CALLERS] = {61, 22, 9, 0};

	for (size_t i = 0; i < SNAP_CALLERS; i++)
		x->caller[i] = (struct snap_caller){
			.name = any ? name[i] : "",
			.samples = any ? x->samples * pct[i] / 100 : 0,
			.samples_total = any ? x->samples_total * pct[i] / 100 : 0,
		};
}

#endif
