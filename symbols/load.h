// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the helper thread does for a source (symbols.h): finds files, reads them, makes a map of
 * them. These functions wait for files; only the helper thread, tests and doctor call them.
 */
#ifndef KVMTOP_LOAD_H
#define KVMTOP_LOAD_H

#include "bytes.h"
#include "symtab.h"

struct map_cache;

struct load_context {
	struct sysroot *root;
	const struct guest_files *files; /* NULL: none were given */
	struct symcache *tables;
	struct map_cache *maps;
};

struct loaded {
	struct symmap *map; /* NULL: none; a reference */
	struct symbols_status status;
	uint64_t stext; /* where kallsyms has it, also one that was refused; 0: not known */
	bool names_idle; /* it has the idle loop of Linux: where the guest halts can be judged */
	bool wants_evidence; /* a vmlinux whose slide nothing said */
};

/* The host's kernel. They never fail but say in the status what is missing. */
void load_host(const struct load_context *c, struct loaded *out);

/*
 * What one process may cost, in bytes: whoever started it chose how many files it has, how large
 * and how full. A file for which there is no room is as one without symbols.
 */
struct process_limits {
	uint64_t files; /* looked into or summed up; what is kept of others' counts nothing */
	size_t symbols; /* of memory, what is shared with others too */
};

/* The user code of a process; within limits that no usual one comes near. */
void load_process(const struct load_context *c, pid_t pid, struct loaded *out);
void load_process_within(const struct load_context *c, pid_t pid,
			 const struct process_limits *limits, struct loaded *out);
/* A guest's kernel; evidence: of its exits, for the slide of a vmlinux. */
void load_guest(const struct load_context *c, const struct guest_vm *vm,
		const struct symbols_evidence *evidence, size_t nevidence, struct loaded *out);

/* Sets the status; texts are cut. */
void loaded_status(struct loaded *l, enum symbols_state state, const char *source, const char *mend,
		   const char *why, ...) __attribute__((format(printf, 5, 6)));

/*
 * Text of kallsyms and of modules (len 0: none) into a map and its status; `restricted` is the
 * mend for hidden addresses. Where _stext was is set also when the rest is of no use; 0: not said.
 */
void load_kernel_text(const struct load_context *c, const struct bytes *kallsyms,
		      const struct bytes *modules, const char *source, const char *restricted,
		      struct loaded *out, uint64_t *stext);

/* --- maps by what they were made of; the helper thread only --- */

struct map_key {
	struct stamp file[3]; /* zero where there are fewer */
	uint64_t more; /* whatever else it depends on */
};

struct map_cache *map_cache_new(void);
void map_cache_free(struct map_cache *m);
/* A reference to the map and its status as they were; false: not there. */
bool map_cache_get(struct map_cache *m, const struct map_key *key, struct loaded *out);
void map_cache_put(struct map_cache *m, const struct map_key *key, const struct loaded *l);
/* Forgets maps that nobody else has. */
void map_cache_trim(struct map_cache *m);

#endif
