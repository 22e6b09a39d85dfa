// SPDX-License-Identifier: GPL-2.0-only
/*
 * The symbols of a guest's kernel, from whatever speaks of it (guest_files.h), in the order of
 * trust. What is there but cannot be right is refused and said, not used: another kernel's names
 * look as good as the right ones.
 */
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "elf_symbols.h"
#include "guest_files.h"
#include "load.h"
#include "modules.h"
#include "procfs.h"
#include "slide.h"
#include "sysroot.h"
#include "text.h"

#define NOTES_MAX (1u << 20)
#define VMLINUX_MAX (512u << 20) /* unpacked, of one that is packed */
#define KEY_KALLSYMS 2 /* what a key of the cache is for, in its `more` */
#define KEY_VMLINUX 3
/* A list as short as this is there for _stext, beside a vmlinux. */
#define SHORT_LIST 200
/* Where x86 kernels are that were not moved. */
#define X86_STEXT 0xffffffff81000000u
#define CLOCK_SLACK_S 5

struct guest {
	const struct load_context *c;
	const struct guest_vm *vm;
	const struct symbols_evidence *evidence;
	size_t nevidence;
	char mend[SYMBOLS_TEXT]; /* kvmtop guest-symbols … */
};

/* --- the one command that brings names --- */

/* Where ssh may lead: "pid:4711" is no name, nor one of a host. */
static bool is_host(const char *s)
{
	return *s && *s != '-' &&
	       !s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")];
}

/* kvmtop would take it for an option, or it is too long to be shown. */
static bool is_no_word(const char *name, size_t room)
{
	return !name || !*name || *name == '-' || text_shell_word(NULL, 0, name) >= room;
}

void guest_symbols_command(const struct guest_vm *vm, char *out, size_t size)
{
	const char *name = vm->name;
	char word[110];

	if (is_no_word(name, sizeof(word)))
		name = is_no_word(vm->uuid, sizeof(word)) ? "NAME" : vm->uuid;
	text_shell_word(word, sizeof(word), name);
	snprintf(out, size, "kvmtop guest-symbols %s -- ssh root@%s", word,
		 is_host(name) ? name : "GUEST");
}

/* --- is it of this boot? --- */

/* When the process began, in seconds of the wall clock; 0: not known. */
static time_t started_at(const struct load_context *c, pid_t pid)
{
	struct timespec now, up;
	struct proc_stat st;
	char buf[1024];
	ssize_t n;

	if (!sysroot_is_live(c->root))
		return 0;
	n = sysroot_readf(c->root, buf, sizeof(buf), "proc/%d/stat", (int)pid);
	if (n < 0 || procfs_parse_stat(buf, (size_t)n, &st) < 0)
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return now.tv_sec - up.tv_sec + (time_t)(st.start / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* From before the VM's process: what KASLR moves, and modules, lie elsewhere at every boot. */
static bool is_older(const struct guest *g, const struct guest_found *f, enum found_file what)
{
	time_t began = f->own[what] ? started_at(g->c, g->vm->pid) : 0;
	struct stamp st;

	return began && stamp_of(f->fd[what], &st) == 0 &&
	       st.mtime_ns / 1000000000u + CLOCK_SLACK_S < (uint64_t)began;
}

/* Of files that are usable without them. */
static void drop_older_modules(const struct guest *g, struct guest_found *f)
{
	if (f->fd[FOUND_MODULES] < 0 || !is_older(g, f, FOUND_MODULES))
		return;
	close(f->fd[FOUND_MODULES]);
	f->fd[FOUND_MODULES] = -1;
}

/* --- kallsyms --- */

static void read_optional(int fd, size_t limit, struct bytes *out)
{
	*out = (struct bytes){0};
	if (fd >= 0)
		bytes_read(fd, limit, out);
}

static void read_kallsyms(const struct guest *g, const struct guest_found *f, struct loaded *out,
			  uint64_t *stext)
{
	struct bytes kallsyms, modules;
	char mend[SYMBOLS_TEXT];
	int rc = bytes_read(f->fd[FOUND_KALLSYMS], BYTES_TEXT_MAX, &kallsyms);

	*stext = 0;
	if (rc) {
		loaded_status(out, SYMBOLS_REFUSED, f->name[FOUND_KALLSYMS], g->mend, "%s",
			      bytes_error(rc));
		return;
	}
	read_optional(f->fd[FOUND_MODULES], BYTES_TEXT_MAX, &modules);
	snprintf(mend, sizeof(mend),
		 "in the guest: sysctl kernel.kptr_restrict=1; then as root: %.150s", g->mend);
	load_kernel_text(g->c, &kallsyms, &modules, f->name[FOUND_KALLSYMS], mend, out, stext);
	bytes_free(&kallsyms);
	bytes_free(&modules);
}

/* A kernel that was not moved is where it was at another boot; its modules need not be. */
static void keep_kernel_alone(const struct guest *g, const char *source, struct loaded *out)
{
	const struct symmap_part *part;
	size_t n = symmap_parts(out->map, &part), kept = 0;
	struct symmap_part *kernel = calloc(n + 1, sizeof(*kernel));
	struct symmap *map = NULL;

	for (size_t i = 0; kernel && i < n; i++)
		if (!symtab_module(part[i].tab)[0])
			kernel[kept++] = part[i];
	if (kernel && kept == n) {
		free(kernel);
		return;
	}
	if (kernel)
		map = symmap_new(kernel, kept);
	symmap_unref(out->map);
	out->map = map;
	loaded_status(out, map ? SYMBOLS_PARTIAL : SYMBOLS_REFUSED, source, g->mend, "%s",
		      map ? "read before this VM was started: its modules are elsewhere since, "
			    "and are left out"
			  : strerror(ENOMEM));
	free(kernel);
}

/* From the cache or the files; *stext also where the symbols are of no use. */
static void load_kallsyms(const struct guest *g, const struct guest_found *f, struct loaded *out,
			  uint64_t *stext)
{
	struct map_key key = {.more = KEY_KALLSYMS};

	if (stamp_of(f->fd[FOUND_KALLSYMS], &key.file[0]) < 0)
		return;
	if (f->fd[FOUND_MODULES] >= 0)
		stamp_of(f->fd[FOUND_MODULES], &key.file[1]);
	if (map_cache_get(g->c->maps, &key, out)) {
		*stext = out->stext;
	} else {
		read_kallsyms(g, f, out, stext);
		out->stext = *stext;
		map_cache_put(g->c->maps, &key, out);
	}
	if (!out->map || !*stext || !is_older(g, f, FOUND_KALLSYMS))
		return;
	if (*stext == X86_STEXT) {
		keep_kernel_alone(g, f->name[FOUND_KALLSYMS], out);
		return;
	}
	symmap_unref(out->map);
	out->map = NULL;
	*stext = 0;
	loaded_status(out, SYMBOLS_REFUSED, f->name[FOUND_KALLSYMS], g->mend,
		      "read before this VM was started; KASLR put its kernel elsewhere since");
}

/* --- vmlinux --- */

/* What the guest's own notes say that it is. */
static void known_id(const struct guest_found *f, struct build_id *id)
{
	struct bytes notes;

	id->len = 0;
	read_optional(f->fd[FOUND_NOTES], NOTES_MAX, &notes);
	if (notes.data)
		notes_build_id(notes.data, notes.len, id);
	bytes_free(&notes);
}

bool guest_is_boot_image(const char *data, size_t len)
{
	return len > 0x206 && memcmp(data + 0x202, "HdrS", 4) == 0;
}

struct vmlinux {
	struct elf_file *elf;
	struct bytes unpacked;
	struct elf_facts facts;
};

static void close_vmlinux(struct vmlinux *v)
{
	elf_close(v->elf);
	bytes_free(&v->unpacked);
}

/* An ELF file, or one that gzip or xz packed. */
static int open_vmlinux(int fd, struct vmlinux *v, const char **why)
{
	char head[1024];
	ssize_t n = pread(fd, head, sizeof(head), 0);
	int rc;

	*v = (struct vmlinux){0};
	*why = "this is no ELF file";
	if (n < 0)
		return -errno;
	if (guest_is_boot_image(head, (size_t)n)) {
		*why = "a bzImage has no symbols: give its vmlinux (--guestvmlinux)";
		return -EBADMSG;
	}
	if (n >= 4 && memcmp(head, "\177ELF", 4) == 0) {
		rc = elf_open_fd(fd, &v->elf);
	} else {
		rc = bytes_read(fd, VMLINUX_MAX, &v->unpacked);
		if (!rc)
			rc = elf_open_memory(v->unpacked.data, v->unpacked.len, &v->elf);
	}
	if (!rc)
		elf_read_facts(v->elf, &v->facts);
	return rc;
}

/* Two builds, both named: "1f0e…" and "22ab…". */
static void refuse_other(const struct guest *g, const char *source, const struct build_id *file,
			 const struct build_id *guest, struct loaded *out)
{
	char a[20], b[20];

	build_id_text(file, a, sizeof(a));
	build_id_text(guest, b, sizeof(b));
	loaded_status(out, SYMBOLS_REFUSED, source, g->mend,
		      "another kernel's: build-id %s, the guest's is %s", a, b);
}

/* Symbols of an opened vmlinux, moved by the slide. */
static void add_vmlinux(const struct guest *g, const struct guest_found *f, struct vmlinux *v,
			uint64_t slide, const char *source, struct loaded *out)
{
	struct symbuild *b = symbuild_new();
	struct modules_facts mods = {0};
	struct bytes modules;
	int rc = b ? elf_add_symbols(v->elf, NULL, ELF_ADDRESSES, slide, 0, b, &v->facts) : -ENOMEM;

	read_optional(f->fd[FOUND_MODULES], BYTES_TEXT_MAX, &modules);
	if (!rc && modules.data)
		modules_parse(modules.data, modules.len, b, &mods);
	bytes_free(&modules);
	if (rc)
		symbuild_free(b);
	else
		rc = symbuild_finish(b, g->c->tables, &out->map);
	if (rc == -ENODATA)
		loaded_status(out, SYMBOLS_NONE, source, g->mend, "it has no symbols: stripped");
	else if (rc)
		loaded_status(out, SYMBOLS_REFUSED, source, "", "%s", bytes_error(rc));
	else
		loaded_status(out, SYMBOLS_PARTIAL, source, g->mend,
			      "a vmlinux has no symbols of modules");
}

static void place_vmlinux(const struct guest *g, const struct guest_found *f, struct vmlinux *v,
			  const struct slide_facts *known, const char *source, struct loaded *out)
{
	struct map_key key = {.more = KEY_VMLINUX};
	struct elf_facts facts = v->facts;
	struct build_id id;
	uint64_t slide;
	int rc;

	known_id(f, &id);
	if (!id.len && known->vmcoreinfo)
		id = known->vmcoreinfo->id;
	if (id.len && v->facts.id.len && !build_id_equal(&id, &v->facts.id)) {
		refuse_other(g, source, &v->facts.id, &id, out);
		return;
	}
	rc = elf_find_kernel(v->elf, &facts);
	rc = rc ? rc : slide_find(v->elf, &facts, known, &slide);
	if (rc == -EXDEV) {
		loaded_status(out, SYMBOLS_REFUSED, source, g->mend,
			      "another kernel's than the guest runs");
		return;
	}
	if (rc) {
		loaded_status(out, SYMBOLS_REFUSED, source, g->mend,
			      "its KASLR slide is not known yet: exits of the guest or its "
			      "kallsyms tell it");
		out->wants_evidence = true;
		return;
	}
	stamp_of(f->fd[FOUND_VMLINUX], &key.file[0]);
	if (f->fd[FOUND_MODULES] >= 0)
		stamp_of(f->fd[FOUND_MODULES], &key.file[1]);
	key.file[2].dev = slide;
	if (map_cache_get(g->c->maps, &key, out))
		return;
	add_vmlinux(g, f, v, slide, source, out);
	map_cache_put(g->c->maps, &key, out);
}

/*
 * "nokaslr", or the very file that the VMM boots: what moves an x86 kernel is the code around it
 * in a bzImage, and a vmlinux has none.
 */
static bool is_fixed(const struct guest *g, const struct guest_found *f, const struct vmlinux *v)
{
	return (f->booted && (v->facts.machine == EM_X86_64 || v->facts.machine == EM_386)) ||
	       guest_has_nokaslr(g->c->root, g->vm->pid);
}

static void load_vmlinux(const struct guest *g, const struct guest_found *f, uint64_t stext,
			 struct loaded *out)
{
	char source[SYMBOLS_TEXT];
	struct slide_facts known = {
		.stext = stext, .evidence = g->evidence, .nevidence = g->nevidence};
	struct vmcoreinfo info;
	struct bytes text;
	struct vmlinux v;
	const char *why;
	int rc = open_vmlinux(f->fd[FOUND_VMLINUX], &v, &why);

	snprintf(source, sizeof(source), "%s", f->name[FOUND_VMLINUX]);
	if (rc) {
		loaded_status(out, SYMBOLS_REFUSED, source, g->mend, "%s",
			      rc == -EBADMSG ? why : strerror(-rc));
		close_vmlinux(&v);
		return;
	}
	known.fixed = is_fixed(g, f, &v);
	read_optional(f->fd[FOUND_VMCOREINFO], NOTES_MAX, &text);
	if (text.data && vmcoreinfo_parse(text.data, text.len, &info) == 0) {
		known.vmcoreinfo = &info;
		/* Of an earlier boot only the build-id still holds. */
		if (is_older(g, f, FOUND_VMCOREINFO))
			info = (struct vmcoreinfo){.id = info.id};
	}
	place_vmlinux(g, f, &v, &known, source, out);
	bytes_free(&text);
	close_vmlinux(&v);
}

/* --- all places, in their order --- */

/* What one place has; out->map NULL: it is of no use, the status says why. */
static void load_place(const struct guest *g, const struct guest_found *f, struct loaded *out)
{
	struct loaded other = {0};
	uint64_t stext = 0;

	if (f->fd[FOUND_KALLSYMS] >= 0)
		load_kallsyms(g, f, out, &stext);
	if (f->fd[FOUND_VMLINUX] < 0 || (out->map && symmap_count(out->map) > SHORT_LIST))
		return;
	load_vmlinux(g, f, stext, &other);
	/* Of two refusals the first is told; a short list is there for the vmlinux. */
	if (!other.map && !other.wants_evidence && !out->map &&
	    out->status.state != SYMBOLS_LOADING)
		return;
	symmap_unref(out->map);
	*out = other;
}

/* A made list, or one of another system, may well halt in functions of any name. */
static bool has_idle_loop(const struct symmap *m)
{
	static const char *const names[] = {"default_idle", "native_safe_halt",
					    "cpu_startup_entry"};
	struct symbol s;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (symmap_find(m, names[i], &s))
			return true;
	return false;
}

void load_guest(const struct load_context *c, const struct guest_vm *vm,
		const struct symbols_evidence *evidence, size_t nevidence, struct loaded *out)
{
	struct guest g = {.c = c, .vm = vm, .evidence = evidence, .nevidence = nevidence};
	char why[SYMBOLS_TEXT] = "";

	*out = (struct loaded){0};
	guest_symbols_command(vm, g.mend, sizeof(g.mend));
	for (int w = 0; w < WHERE_NR && !out->map; w++) {
		struct loaded here = {0};
		struct guest_found f;

		if (guest_files_find(c->root, c->files, vm, (enum found_where)w, &f)) {
			drop_older_modules(&g, &f);
			load_place(&g, &f, &here);
		}
		if (!why[0])
			snprintf(why, sizeof(why), "%s", f.why);
		guest_found_close(&f);
		/* The first refusal is the one to tell: it is of the most trusted place. */
		if (here.map ||
		    (here.status.state != SYMBOLS_LOADING && out->status.state == SYMBOLS_LOADING))
			*out = here;
	}
	out->names_idle = out->map && has_idle_loop(out->map);
	if (out->status.state == SYMBOLS_LOADING)
		loaded_status(out, SYMBOLS_NONE, "", g.mend, "%s",
			      why[0] ? why : "no symbols of this guest's kernel are known here");
}
