// SPDX-License-Identifier: GPL-2.0-only
/*
 * A format text of any bytes: as offsets (kvm_format) and as names (kvm_names). Whatever
 * was accepted decodes raw data of every length without reading beyond them.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "kvm_format.h"
#include "kvm_names.h"

/* libtraceevent forgets what it has read of a text that turns out to be malformed. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libtraceevent";
}

static void decode_all(const struct kvm_format *f, int id)
{
	struct sample s;

	for (uint32_t len = 0; len < 96; len++) {
		uint8_t *raw = malloc(len ? len : 1);
		uint16_t type = (uint16_t)id;

		if (!raw)
			return;
		memset(raw, 0xff, len);
		memcpy(raw, &type, len < sizeof(type) ? len : sizeof(type));
		if (kvm_format_decode(f, raw, len, &s) && s.type >= EV_NR)
			abort();
		free(raw);
	}
}

static void names(const char *text, size_t len)
{
	static const char *const events[] = {"kvm_exit", "kvm_userspace_exit"};
	struct kvm_names *n = kvm_names_new();
	char buf[80];

	if (!n)
		return;
	for (size_t i = 0; i < 2; i++)
		(void)kvm_names_load(n, events[i], text, len);
	for (uint32_t isa = 0; isa < 24; isa++)
		for (uint64_t key = 0; key < 200; key++)
			if (strlen(kvm_names_key(n, KIND_VMEXIT, isa, key, DIR_NONE, buf,
						 sizeof(buf))) >= sizeof(buf))
				abort();
	kvm_names_free(n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct kvm_format *f;

	if (len < 1 || len > 65536)
		return 0;
	f = kvm_format_new();
	if (!f)
		return 0;
	for (unsigned i = 0; i < 2; i++) {
		unsigned event = (data[0] + i) % KVM_EVENTS;
		int id = kvm_format_load(f, event, (const char *)data + 1, len - 1);

		if (id > 0)
			decode_all(f, id);
	}
	names((const char *)data + 1, len - 1);
	kvm_format_free(f);
	return 0;
}
