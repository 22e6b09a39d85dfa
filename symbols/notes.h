// SPDX-License-Identifier: GPL-2.0-only
/* ELF notes, as /sys/kernel/notes and PT_NOTE have them: which kernel is it? */
#ifndef KVMTOP_NOTES_H
#define KVMTOP_NOTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUILD_ID_MAX 64 /* 20 are usual */

struct build_id {
	uint8_t byte[BUILD_ID_MAX];
	size_t len; /* 0: none */
};

bool build_id_equal(const struct build_id *a, const struct build_id *b);
/* "1f0e…": the first bytes in hex, for messages. */
void build_id_text(const struct build_id *id, char *out, size_t size);

/* The build-id among notes in this machine's byte order; 0, -ENOENT or -EBADMSG. */
int notes_build_id(const void *data, size_t len, struct build_id *out);

/* The text of VMCOREINFO, which the kernel makes for its crash dumps. */
struct vmcoreinfo {
	bool has_offset;
	uint64_t offset; /* KERNELOFFSET: by how far KASLR moved it */
	uint64_t stext; /* SYMBOL(_stext), 0 none */
	struct build_id id;
};

/* Any bytes; 0, or -ENOENT when none of these is in it. */
int vmcoreinfo_parse(const char *text, size_t len, struct vmcoreinfo *out);

#endif
