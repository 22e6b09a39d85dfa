// SPDX-License-Identifier: GPL-2.0-only
/*
 * What all our programs in the kernel need to get there: the object files that clang made are part
 * of kvmtop, libbpf fits them to the running kernel. What was loaded goes when the last descriptor
 * is closed, however kvmtop ends. Not there where it was made without BPF.
 */
#ifndef KVMTOP_COLLECTORS_BPF_LOAD_H
#define KVMTOP_COLLECTORS_BPF_LOAD_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stddef.h>
#include <stdint.h>

struct sysroot;

/* Makes bpf/FILE.bpf.o a part of the program. KVMTOP_BPF is the folder of the object files. */
#define BPF_IMAGE(file)                                                                            \
	__asm__(".section .rodata\n"                                                               \
		".balign 8\n"                                                                      \
		".globl kvmtop_" #file "_begin\n"                                                  \
		"kvmtop_" #file "_begin:\n"                                                        \
		".incbin \"" KVMTOP_BPF "/" #file ".bpf.o\"\n"                                     \
		".globl kvmtop_" #file "_end\n"                                                    \
		"kvmtop_" #file "_end:\n"                                                          \
		".previous\n");                                                                    \
	extern const char kvmtop_##file##_begin[], kvmtop_##file##_end[]

#define BPF_OPEN(file, name, out)                                                                  \
	bpf_load_open(kvmtop_##file##_begin,                                                       \
		      (size_t)(kvmtop_##file##_end - kvmtop_##file##_begin), name, out)

/* Opened, not loaded yet; `name` for who lists the kernel's programs. 0 or -errno. */
int bpf_load_open(const char *image, size_t size, const char *name, struct bpf_object **out);
/* Its constants, before it is loaded. */
int bpf_load_config(struct bpf_object *o, const void *config, size_t size);

struct bpf_size {
	const char *map;
	uint32_t entries;
};

/* How many entries its maps have, before it is loaded. */
int bpf_load_sizes(struct bpf_object *o, const struct bpf_size *size, size_t n);

/* Arrays of it that are mapped here. */
#define BPF_MAPPINGS 10
struct bpf_memory {
	struct {
		void *at;
		size_t len;
	} map[BPF_MAPPINGS];
	unsigned n;
};

/* n entries of so many bytes; NULL: it is not of that shape, or there is no memory. */
void *bpf_memory_map(struct bpf_memory *m, struct bpf_object *o, const char *map, size_t entry,
		     uint32_t n);
void bpf_memory_unmap(struct bpf_memory *m);

/*
 * Attaches one of its programs to the tracepoint of this id; it runs on all CPUs, through an event
 * of `cpu`, an online one. 0 or -errno.
 */
int bpf_load_attach(struct bpf_object *o, const char *program, uint64_t id, int cpu,
		    struct bpf_link **out);
/* Some CPU that is online, or -errno. */
int bpf_load_cpu(const struct sysroot *root);

#endif
