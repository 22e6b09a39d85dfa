// SPDX-License-Identifier: GPL-2.0-only
/*
 * The user code of a VMM: its mappings from /proc/<pid>/maps, the files behind them, and the files
 * with their symbols. All of them belong to whoever started the VMM.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "elf_symbols.h"
#include "load.h"
#include "maps.h"
#include "sysroot.h"

#define MAPS_MAX (8u << 20)
#define PARTS_MAX 65536
#define VDSO_MAX (64u << 10)
#define EMBEDDED_MAX (64u << 20) /* .gnu_debugdata, unpacked */
#define DEBUG_DIR "/usr/lib/debug"

/* One process being loaded. */
struct process {
	const struct load_context *c;
	pid_t pid;
	int root; /* its root folder, O_PATH; -1: not to be had */
	struct symmap_part *part;
	size_t npart, room;
	struct process_limits left;
	size_t files, without; /* code files, and those that gave no symbols */
	char example[64]; /* name of one of the latter */
};

/* --- the file with the symbols of a file --- */

/* Below the process' root, else the host's: a container rarely has debug files. */
static int open_debug(const struct process *p, const char *path)
{
	int fd = p->root >= 0 ? bytes_open_in_root(p->root, path) : -ENOENT;

	if (fd < 0)
		fd = bytes_open_fd(sysroot_openat(p->c->root, path, O_PATH));
	return fd;
}

/* False: with this file too much would be read for one process. */
static bool may_read(struct process *p, int fd)
{
	struct stamp st;

	if (stamp_of(fd, &st) < 0 || st.size > p->left.files)
		return false;
	p->left.files -= st.size;
	return true;
}

static bool crc_matches(int fd, uint32_t crc)
{
	uint8_t buf[65536];
	uLong sum = crc32(0, NULL, 0);
	ssize_t n;
	off_t at = 0;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		sum = crc32(sum, buf, (uInt)n);
		at += n;
	}
	return n == 0 && (uint32_t)sum == crc;
}

/* /usr/lib/debug/.build-id/ab/cdef….debug */
static int open_by_id(const struct process *p, const struct build_id *id)
{
	char path[sizeof(DEBUG_DIR) + 32 + 2 * BUILD_ID_MAX];
	size_t n;

	if (id->len < 2)
		return -ENOENT;
	n = (size_t)snprintf(path, sizeof(path), DEBUG_DIR "/.build-id/%02x/", id->byte[0]);
	for (size_t i = 1; i < id->len; i++)
		n += (size_t)snprintf(path + n, sizeof(path) - n, "%02x", id->byte[i]);
	snprintf(path + n, sizeof(path) - n, ".debug");
	return open_debug(p, path);
}

/* The three places that a debug link of a file in folder `dir` may mean. */
static bool debug_path(unsigned which, const char *dir, int dir_len, const char *name, char *out,
		       size_t size)
{
	int n = -1;

	if (which == 0)
		n = snprintf(out, size, "%.*s/%s", dir_len, dir, name);
	else if (which == 1)
		n = snprintf(out, size, "%.*s/.debug/%s", dir_len, dir, name);
	else
		n = snprintf(out, size, DEBUG_DIR "%.*s/%s", dir_len, dir, name);
	return n > 0 && (size_t)n < size;
}

/* Only a file with the right sum is the one that was meant. */
static int open_by_link(struct process *p, const char *file, const struct elf_facts *f)
{
	const char *slash = strrchr(file, '/');
	char path[PATH_MAX];

	for (unsigned i = 0; f->debug_name[0] && slash && i < 3; i++) {
		int fd;

		if (!debug_path(i, file, (int)(slash - file), f->debug_name, path, sizeof(path)))
			continue;
		fd = open_debug(p, path);
		if (fd < 0)
			continue;
		if (may_read(p, fd) && crc_matches(fd, f->debug_crc))
			return fd;
		close(fd);
	}
	return -ENOENT;
}

/* --- one file --- */

static bool add_debug_file(int fd, const struct elf_file *main, const struct build_id *id,
			   unsigned module, struct symbuild *b)
{
	struct elf_file *e = NULL;
	struct elf_facts facts;
	bool ok = false;

	if (fd >= 0 && elf_open_fd(fd, &e) == 0) {
		elf_read_facts(e, &facts);
		/* One of another build has other addresses. */
		if (!id->len || build_id_equal(id, &facts.id))
			ok = elf_add_symbols(e, main, ELF_OFFSETS, 0, module, b, &facts) == 0;
	}
	elf_close(e);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool add_embedded(struct elf_file *main, unsigned module, struct symbuild *b)
{
	struct elf_facts facts;
	struct elf_file *e = NULL;
	struct bytes unpacked;
	const void *data;
	size_t len;
	bool ok = false;

	if (elf_embedded(main, &data, &len) < 0 ||
	    bytes_unpack(data, len, EMBEDDED_MAX, &unpacked) < 0)
		return false;
	if (elf_open_memory(unpacked.data, unpacked.len, &e) == 0)
		ok = elf_add_symbols(e, main, ELF_OFFSETS, 0, module, b, &facts) == 0;
	elf_close(e);
	bytes_free(&unpacked);
	return ok;
}

/* The symbols of the file at fd; `path` as the process has it. 0, -ENODATA, -ENOMEM or -EBADMSG. */
static int read_file(struct process *p, int fd, const char *path, struct symbuild *b)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	int module = symbuild_module(b, base, strlen(base));
	struct elf_facts facts;
	struct elf_file *e;
	int rc = module < 0 ? module : elf_open_fd(fd, &e);

	if (rc)
		return rc;
	elf_read_facts(e, &facts);
	rc = elf_add_symbols(e, NULL, ELF_OFFSETS, 0, (unsigned)module, b, &facts);
	if (rc != -ENOMEM && !facts.full) {
		int debug = open_by_id(p, &facts.id);

		if (debug < 0)
			debug = open_by_link(p, path, &facts);
		if (add_debug_file(debug, e, &facts.id, (unsigned)module, b) ||
		    add_embedded(e, (unsigned)module, b))
			rc = 0;
	}
	elf_close(e);
	return rc;
}

/* The map of a file by offsets in it, from the cache where it is there; NULL: no symbols. */
static struct symmap *map_of_file(struct process *p, int fd, const char *path)
{
	struct loaded l = {0};
	struct map_key key = {.more = 1};
	struct symbuild *b;

	if (stamp_of(fd, &key.file[0]) < 0)
		return NULL;
	if (map_cache_get(p->c->maps, &key, &l))
		return l.map;
	b = may_read(p, fd) ? symbuild_new() : NULL;
	if (!b)
		return NULL;
	if (read_file(p, fd, path, b) < 0)
		symbuild_free(b);
	else if (symbuild_finish(b, p->c->tables, &l.map) < 0)
		return NULL;
	map_cache_put(p->c->maps, &key, &l);
	return l.map;
}

/* --- all mappings of the process --- */

static int add_part(struct process *p, const struct symmap_part *part)
{
	if (p->npart == p->room) {
		size_t room = p->room ? p->room * 2 : 64;
		struct symmap_part *q;

		if (p->npart >= PARTS_MAX)
			return -E2BIG;
		q = reallocarray(p->part, room, sizeof(*q));
		if (!q)
			return -ENOMEM;
		p->part = q;
		p->room = room;
	}
	symtab_ref(part->tab);
	p->part[p->npart++] = *part;
	return 0;
}

/* What the mapping shows of a file's map: its parts, cut and moved. */
static void add_file_parts(struct process *p, const struct mapping *m, const struct symmap *map)
{
	const struct symmap_part *part;
	size_t n = symmap_parts(map, &part);
	uint64_t from = m->offset, to = m->offset + (m->end - m->start);

	for (size_t i = 0; i < n; i++) {
		struct symmap_part q = part[i];

		if (q.lo < from)
			q.lo = from;
		if (q.hi > to)
			q.hi = to;
		if (q.lo >= q.hi)
			continue;
		q.lo += m->start - from;
		q.hi += m->start - from;
		q.bias += m->start - from;
		if (add_part(p, &q) < 0)
			return;
	}
}

/* Where no symbol is, an address is named by the file alone. */
static void add_nameless(struct process *p, const struct mapping *m)
{
	struct symmap_part part = {.lo = m->start, .hi = m->end, .bias = m->start};

	part.tab = symtab_nameless(p->c->tables, m->name);
	if (part.tab)
		add_part(p, &part);
	symtab_unref(part.tab);
}

/*
 * The very file that is mapped, also when it was deleted or is hidden by a mount since; that needs
 * rights. Else the file of that name, if it is still the same.
 */
static int open_mapped(const struct process *p, const struct mapping *m)
{
	char path[96];
	struct stamp st;
	int fd;

	snprintf(path, sizeof(path), "proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)p->pid,
		 m->start, m->end);
	fd = bytes_open_fd(sysroot_openat(p->c->root, path, O_PATH));
	if (fd >= 0)
		return fd;
	fd = p->root >= 0 ? bytes_open_in_root(p->root, m->path) : -ENOENT;
	if (fd >= 0 && (stamp_of(fd, &st) < 0 || st.ino != m->inode)) {
		close(fd);
		fd = -ESTALE;
	}
	return fd;
}

/*
 * The kernel's own code in every process, which is in no file: clock_gettime() of a VMM that asks
 * for the time all the while. Copied from the process, which may be of another ABI than ours.
 */
static struct symmap *map_of_vdso(const struct process *p, const struct mapping *m)
{
	size_t len = (size_t)(m->end - m->start);
	struct symbuild *b = symbuild_new();
	struct symmap *map = NULL;
	struct elf_facts facts;
	struct elf_file *e = NULL;
	char path[40], *copy = len <= VDSO_MAX ? malloc(len) : NULL;
	int fd, module, rc = -ENOMEM;

	snprintf(path, sizeof(path), "proc/%d/mem", (int)p->pid);
	fd = sysroot_openat(p->c->root, path, O_RDONLY);
	if (copy && b && fd >= 0 && pread(fd, copy, len, (off_t)m->start) == (ssize_t)len)
		rc = elf_open_memory(copy, len, &e);
	module = rc ? rc : symbuild_module(b, m->name, strlen(m->name));
	if (module >= 0)
		rc = elf_add_symbols(e, NULL, ELF_OFFSETS, 0, (unsigned)module, b, &facts);
	if (rc || module < 0 || symbuild_finish(b, p->c->tables, &map) < 0)
		map = NULL;
	if (rc || module < 0)
		symbuild_free(b);
	elf_close(e);
	if (fd >= 0)
		close(fd);
	free(copy);
	return map;
}

/* The map, or NULL where there is no room for it beside the others of the process. */
static struct symmap *fits(struct process *p, struct symmap *map)
{
	size_t bytes = map ? symmap_bytes(map) : 0;

	if (bytes > p->left.symbols) {
		symmap_unref(map);
		return NULL;
	}
	p->left.symbols -= bytes;
	return map;
}

static void add_mapping(struct process *p, const struct mapping *m)
{
	struct symmap *map = NULL;
	int fd = m->inode ? open_mapped(p, m) : -ENOENT;

	if (strcmp(m->path, "[vdso]") == 0)
		map = map_of_vdso(p, m);
	if (fd >= 0) {
		map = fits(p, map_of_file(p, fd, m->path));
		close(fd);
	}
	if (map)
		add_file_parts(p, m, map);
	p->files += m->inode != 0;
	if (!map && m->inode) {
		p->without++;
		snprintf(p->example, sizeof(p->example), "%s", m->name);
	}
	symmap_unref(map);
	add_nameless(p, m);
}

static void judge(const struct process *p, struct loaded *out)
{
	char source[64];

	snprintf(source, sizeof(source), "/proc/%d/maps", (int)p->pid);
	if (p->without && p->without == p->files)
		loaded_status(out, SYMBOLS_PARTIAL, source, "",
			      "none of its %zu files of code has symbols that could be read",
			      p->files);
	else if (p->without)
		loaded_status(out, SYMBOLS_PARTIAL, source, "",
			      "%zu of %zu files of code have no symbols, cannot be read or are too "
			      "large (%s)",
			      p->without, p->files, p->example);
	else
		loaded_status(out, SYMBOLS_OK, source, "", "%s", "");
}

static int read_maps(const struct process *p, struct bytes *out)
{
	char path[40];
	int fd, rc;

	snprintf(path, sizeof(path), "proc/%d/maps", (int)p->pid);
	fd = sysroot_openat(p->c->root, path, O_RDONLY);
	if (fd < 0)
		return fd;
	rc = bytes_read(fd, MAPS_MAX, out);
	close(fd);
	return rc;
}

void load_process(const struct load_context *c, pid_t pid, struct loaded *out)
{
	const struct process_limits usual = {.files = 8ull << 30, .symbols = 512u << 20};

	load_process_within(c, pid, &usual, out);
}

void load_process_within(const struct load_context *c, pid_t pid,
			 const struct process_limits *limits, struct loaded *out)
{
	struct process p = {.c = c, .pid = pid, .left = *limits};
	struct bytes text = {0};
	struct mapping m;
	char path[40];
	size_t at = 0;
	int rc = read_maps(&p, &text);

	*out = (struct loaded){0};
	snprintf(path, sizeof(path), "proc/%d/root", (int)pid);
	if (rc) {
		loaded_status(out, SYMBOLS_NONE, path, rc == -EACCES ? "sudo kvmtop" : "", "%s",
			      strerror(-rc));
		return;
	}
	p.root = sysroot_openat(c->root, path, O_PATH | O_DIRECTORY);
	while (maps_next(text.data, text.len, &at, &m))
		add_mapping(&p, &m);
	out->map = symmap_new(p.part, p.npart);
	judge(&p, out);
	for (size_t i = 0; i < p.npart; i++)
		symtab_unref(p.part[i].tab);
	free(p.part);
	if (p.root >= 0)
		close(p.root);
	bytes_free(&text);
}
