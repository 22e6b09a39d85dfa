// SPDX-License-Identifier: GPL-2.0-only
/* ELF files of any bytes, from memory and from a descriptor. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bytes.h"
#include "elf_symbols.h"

/* All that is done with one; the number of symbols. */
static size_t use(struct elf_file *e, enum elf_space space)
{
	struct symbuild *b = symbuild_new();
	struct elf_facts facts;
	struct symmap *m = NULL;
	struct bytes unpacked;
	const uint8_t *code;
	const void *data;
	size_t n = 0, len;

	if (!b)
		abort();
	elf_read_facts(e, &facts);
	if (strnlen(facts.debug_name, sizeof(facts.debug_name)) == sizeof(facts.debug_name) ||
	    facts.id.len > BUILD_ID_MAX)
		abort();
	elf_find_kernel(e, &facts);
	if (elf_code_at(e, facts.stext, &code) > 0 && *code == 0xf4)
		facts.stext++;
	if (elf_embedded(e, &data, &len) == 0 && bytes_unpack(data, len, 1 << 20, &unpacked) == 0)
		bytes_free(&unpacked);
	elf_add_symbols(e, NULL, space, 0x1000, 0, b, &facts);
	if (symbuild_finish(b, NULL, &m) == 0)
		n = symmap_count(m);
	symmap_unref(m);
	return n;
}

static size_t from_memory(const uint8_t *data, size_t len, enum elf_space space)
{
	char *copy = malloc(len ? len : 1);
	struct elf_file *e;
	size_t n = 0;

	if (!copy)
		abort();
	memcpy(copy, data, len);
	if (elf_open_memory(copy, len, &e) == 0) {
		n = use(e, space);
		elf_close(e);
	}
	free(copy);
	return n;
}

static void from_file(const uint8_t *data, size_t len, enum elf_space space)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_file *e;

	if (fd < 0)
		return;
	if (write(fd, data, len) == (ssize_t)len && elf_open_fd(fd, &e) == 0) {
		use(e, space);
		elf_close(e);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	from_memory(data, len, ELF_ADDRESSES);
	from_memory(data, len, ELF_OFFSETS);
	from_file(data, len, ELF_ADDRESSES);
	return 0;
}
