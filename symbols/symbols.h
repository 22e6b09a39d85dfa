// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of code addresses: the host's kernel, the code of a VMM's process, the kernels of guests.
 *
 * Three layers. A `symtab` has the symbols of one piece of code (a kernel, a module, an ELF file)
 * with addresses relative to its own beginning, so that guests of one kernel share it whatever
 * their KASLR. A `symmap` says where in one address space which pieces lie. A `symsource` is what
 * is known of one such space now: a helper thread loads it, symbols_poll() hands it over, and
 * nothing that the collecting thread calls waits for a file.
 *
 * Names come from guests and from files of others: escape them (text.h) before they are shown.
 */
#ifndef KVMTOP_SYMBOLS_H
#define KVMTOP_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sysroot;
struct symtab;
struct symmap;
struct symbols;
struct symsource;

struct symbol {
	const char *name; /* NULL: none, then only `module` may be known */
	const char *module; /* "kvm_amd", "libc.so.6"; "": the kernel itself; NULL: not known */
	uint64_t start; /* its address in the space asked for */
	uint32_t size; /* bytes; never reaches into the next symbol */
	/* A key to count by, the same in all spaces that share the table; table 0: none. */
	uint32_t table, index;
};

/* --- tables: immutable, counted references, any thread --- */

struct symtab *symtab_ref(struct symtab *t);
void symtab_unref(struct symtab *t); /* NULL is fine */
/* Small, from 1, never used again by the same `struct symbols`; 0: in no cache. */
uint32_t symtab_id(const struct symtab *t);
const char *symtab_module(const struct symtab *t); /* "": the kernel itself */
size_t symtab_count(const struct symtab *t);
/* By number; start is relative to the table. False: no such number. */
bool symtab_symbol(const struct symtab *t, uint32_t index, struct symbol *out);

/* --- address spaces: immutable, counted references, any thread --- */

struct symmap *symmap_ref(struct symmap *m);
void symmap_unref(struct symmap *m); /* NULL is fine */
/*
 * False: no symbol there; out->module then names the piece of code, NULL where that is unknown,
 * and out->table has its number.
 */
bool symmap_lookup(const struct symmap *m, uint64_t addr, struct symbol *out);
/* The first symbol of this name in the order of addresses; slow. */
bool symmap_find(const struct symmap *m, const char *name, struct symbol *out);
size_t symmap_count(const struct symmap *m); /* symbols */
size_t symmap_bytes(const struct symmap *m); /* of memory, shared tables too */

/* --- what guests do, held against what is said of their kernels --- */

/* Where a guest was: a sample, or an exit that happens at one instruction. */
enum evidence_kind {
	EVIDENCE_SAMPLE,
	EVIDENCE_HLT,
	EVIDENCE_CPUID,
	EVIDENCE_MSR, /* read or written */
	EVIDENCE_IO,
};
struct symbols_evidence {
	uint64_t addr;
	enum evidence_kind kind;
};

/* --- sources: the collecting thread only --- */

enum symbols_state {
	SYMBOLS_LOADING, /* not known yet */
	SYMBOLS_OK,
	SYMBOLS_PARTIAL, /* some: modules are missing, say */
	SYMBOLS_REFUSED, /* there are some, but they are wrong or hidden: not used */
	SYMBOLS_NONE, /* nothing to take them from */
};

#define SYMBOLS_TEXT 240
struct symbols_status {
	enum symbols_state state;
	char source[SYMBOLS_TEXT]; /* what they come from: "/proc/kallsyms" */
	char why[SYMBOLS_TEXT]; /* why not all of them; "" when ok */
	char mend[SYMBOLS_TEXT]; /* the command that mends it, or "" */
};

/* --guestkallsyms and so on: FILE for all guests, or NAME=FILE. Strings belong to the caller. */
enum guest_file { GUEST_KALLSYMS, GUEST_MODULES, GUEST_VMLINUX, GUEST_MOUNT, GUEST_FILE_NR };
struct guest_file_option {
	enum guest_file what;
	const char *vm; /* name, UUID or pid; NULL: all */
	const char *file;
};
struct guest_files {
	const struct guest_file_option *option;
	size_t n;
};

/* Which guest; strings are copied, NULL where there is none. */
struct guest_vm {
	const char *name, *uuid;
	pid_t pid;
};

/* The command that brings the symbols of this guest: for a VM of which nothing is known. */
void guest_symbols_command(const struct guest_vm *vm, char *out, size_t size);

/*
 * root and files (NULL: none) are copied. The helper thread starts with the first source. 0 or
 * -errno.
 */
int symbols_new(const struct sysroot *root, const struct guest_files *files, struct symbols **out);
/* Ends the helper thread, which may be at a file (2 s at most). Sources are freed too. */
void symbols_free(struct symbols *s);
/* For epoll: readable when symbols_poll() would find something. Belongs to s. */
int symbols_fd(const struct symbols *s);
/*
 * Takes over what was loaded; true when a source changed. Tables that nothing uses any more are
 * freed at the second call after: a number (table, index) from before one call of it still has its
 * name until the next.
 */
bool symbols_poll(struct symbols *s);

/* NULL: no memory. Asked twice for the same, each returns its own; close them when done. */
struct symsource *symbols_host(struct symbols *s); /* the host's kernel */
struct symsource *symbols_process(struct symbols *s, pid_t pid); /* user code of a process */
struct symsource *symbols_guest(struct symbols *s,
				const struct guest_vm *vm); /* a guest's kernel */
void symsource_close(struct symsource *src); /* NULL is fine */

/* As symmap_lookup(); false while nothing is loaded. */
bool symsource_lookup(const struct symsource *src, uint64_t addr, struct symbol *out);
const struct symmap *
symsource_map(const struct symsource *src); /* NULL: none; until the next poll */
const struct symbols_status *symsource_status(const struct symsource *src); /* never NULL */
/*
 * Loads anew: after misses (a module or library was loaded, a guest booted). At most once in 30 s
 * for a source, and each time that nothing has changed doubles that, to 16 minutes; else nothing
 * happens.
 */
void symsource_refresh(struct symsource *src, int64_t now_ns);

/*
 * Addresses of the guest's kernel (others are ignored), a few dozen, different ones if possible;
 * copied. With enough of them symbols of another kernel or boot are seen and refused from then
 * on, and a vmlinux whose slide is not known finds it. May change the map and status at once:
 * true. Cheap enough for every tick.
 */
bool symsource_evidence(struct symsource *src, const struct symbols_evidence *e, size_t n);
/* A vmlinux waits for exits that tell its slide: the more different ones, the sooner. */
bool symsource_wants_exits(const struct symsource *src);

/*
 * The name behind a number; out->start is relative to the table. False: no longer known, or the
 * table has no such index; out->module is then that of the table, NULL where there is none.
 */
bool symbols_symbol(const struct symbols *s, uint32_t table, uint32_t index, struct symbol *out);

#endif
