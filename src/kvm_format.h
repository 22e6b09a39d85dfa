// SPDX-License-Identifier: GPL-2.0-only
/*
 * From an event's raw data to a struct sample, by the offsets of its `format`.
 *
 * Fields move between kernels and differ between architectures; nothing is taken from a
 * compiled-in struct. Offsets are read once (libtraceevent), decoding only loads.
 */
#ifndef KVMTOP_KVM_FORMAT_H
#define KVMTOP_KVM_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sample.h"

/* Tracepoints that kvmtop knows; on one machine only some of them exist. */
struct kvm_event_name {
	const char *system, *event; /* "kvm", "kvm_exit": a folder below tracefs' events/ */
	enum ev_type type;
};

#define KVM_EVENTS 15
extern const struct kvm_event_name kvm_events[KVM_EVENTS];

/* The kind that counts events of a type; KIND_NR: none does (kvm_fpu). */
enum kvm_kind kvm_kind_of(enum ev_type type);

struct kvm_format;

/* A field within raw data; size 0: the event has none. */
struct kvm_field {
	uint16_t offset;
	uint8_t size; /* 1, 2, 4 or 8 */
	bool is_signed;
};

/* How the direction follows from `dir`, and the key from `key` and `extra`: kvm_format.c. */
enum kvm_dir_rule { DIR_RULE_NONE, DIR_RULE_FLAG, DIR_RULE_MMIO };
enum kvm_key_rule { KEY_PLAIN, KEY_ISA, KEY_ARM64, KEY_USER, KEY_NONE };

struct kvm_layout {
	enum ev_type type;
	enum kvm_dir_rule dir_rule;
	enum kvm_key_rule key_rule;
	uint32_t isa;
	bool swapped; /* see kvm_format_swapped() */
	uint32_t need; /* bytes of raw data that the fields reach */
	struct kvm_field pid, key, aux, dir, extra, vcpu; /* extra: isa, esr_ec or errno */
};

struct kvm_format *kvm_format_new(void); /* NULL: no memory */
void kvm_format_free(struct kvm_format *f);
/* Before the first is loaded: whether raw data are of the other byte order than this machine. */
void kvm_format_swapped(struct kvm_format *f, bool swapped);
/*
 * Takes the format text of kvm_events[event]. Returns the event's id (> 0: what raw data
 * begin with and perf's config), -EINVAL where the text or a needed field is missing,
 * -ENOMEM. A second text for the same event replaces the first.
 */
int kvm_format_load(struct kvm_format *f, unsigned event, const char *text, size_t len);
/* The id that kvm_format_load() returned, 0 where it did not. */
int kvm_format_id(const struct kvm_format *f, unsigned event);
/* What a decoder needs to know, for one that runs elsewhere; NULL where it was not loaded. */
const struct kvm_layout *kvm_format_layout(const struct kvm_format *f, unsigned event);

/*
 * Which event has which id: index + 1 of kvm_events[], so that decoding needs no search. The id as
 * raw data have it, so that byte order needs no question.
 */
struct kvm_format_ids {
	uint8_t *by_id; /* n of them, the format's */
	uint32_t n;
};
const struct kvm_format_ids *kvm_format_ids(const struct kvm_format *f);

/* Which of kvm_events[] raw data are of; -1: none of ours. */
static inline int kvm_format_event_of(const struct kvm_format_ids *ids, const uint8_t *raw,
				      uint32_t len)
{
	uint16_t id;

	if (len < sizeof(id))
		return -1;
	memcpy(&id, raw, sizeof(id));
	return id < ids->n ? ids->by_id[id] - 1 : -1;
}

int kvm_format_event(const struct kvm_format *f, const uint8_t *raw, uint32_t len);
/*
 * Decodes len bytes of raw data. False: no event of ours, or too short for its own
 * format; never reads beyond. Sets all of *s but time and cpu.
 */
bool kvm_format_decode(const struct kvm_format *f, const uint8_t *raw, uint32_t len,
		       struct sample *s);

#endif
