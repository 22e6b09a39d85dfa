// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest's symbols: where they are looked for, and what is refused. Guests are this very process:
 * a pid with a command line, a start time and a root.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest_capture.h"
#include "guest_dir.h"
#include "guest_env.h"
#include "made_elf.c" /* NOLINT(bugprone-suspicious-include) */
#include "slide.h"
#include "sysroot.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* --- where --- */

static void nothing_known(void **state)
{
	struct loaded l = load(*state, &web01);

	assert_string_equal(l.status.mend, "kvmtop guest-symbols web01 -- ssh root@web01");
	check_state(l, SYMBOLS_NONE, "no symbols of this guest's kernel");
	l = load(*state, &(struct guest_vm){.name = "it's; rm -r /"});
	assert_string_equal(l.status.mend,
			    "kvmtop guest-symbols 'it'\"'\"'s; rm -r /' -- ssh root@GUEST");
	check_state(l, SYMBOLS_NONE, "");
	l = load(*state, &(struct guest_vm){.name = "--help", .uuid = "9f"});
	assert_string_equal(l.status.mend, "kvmtop guest-symbols 9f -- ssh root@9f");
	check_state(l, SYMBOLS_NONE, "");
	l = load(*state, &(struct guest_vm){.name = "pid:4711"});
	assert_string_equal(l.status.mend, "kvmtop guest-symbols pid:4711 -- ssh root@GUEST");
	check_state(l, SYMBOLS_NONE, "");
}

static void own_folder(void **state)
{
	struct env *e = *state;

	copy(e, DATA "kallsyms-6.1.txt", "kvmtop/guests/web01/kallsyms");
	check_state(load(e, &web01), SYMBOLS_OK, "");
	assert_string_equal(name_at(load(e, &web01), 0xffffffff81a59180), "default_idle");
	copy(e, DATA "modules-6.1.txt", "kvmtop/guests/web01/modules");
	check_state(load(e, &web01), SYMBOLS_OK, "");
	/* Another guest of the same kernel: by its UUID, for it has no name; the tables are shared.
	 */
	size_t tables = symcache_count(e->c.tables);

	copy(e, DATA "kallsyms-6.1.txt", "kvmtop/guests/0000-1/kallsyms");
	check_state(load(e, &(struct guest_vm){.uuid = "0000-1"}), SYMBOLS_OK, "");
	assert_int_equal(symcache_count(e->c.tables), tables);
}

static void names_that_are_no_paths(void **state)
{
	static const struct {
		const char *name, *part;
	} rows[] = {
		{"web01", "web01"},	  {"a.b_c-d", "a.b_c-d"},
		{"..", "%2E."},		  {"../../etc", "%2E.%2F..%2Fetc"},
		{".hidden", "%2Ehidden"}, {"a b\n", "a%20b%0A"},
		{"漢", "%E6%BC%A2"},	  {"100%", "100%25"},
	};
	struct env *e = *state;
	char part[NAME_MAX + 1], longest[NAME_MAX + 2];

	for (size_t i = 0; i < N(rows); i++) {
		char path[NAME_MAX + 64];

		assert_int_equal(guest_dir_encode(rows[i].name, part, sizeof(part)), 0);
		assert_string_equal(part, rows[i].part);
		snprintf(path, sizeof(path), "kvmtop/guests/%s/kallsyms", part);
		put(e, path, "ffffffff81000000 T here\nffffffff81000100 T _etext\n");
		assert_string_equal(name_at(load(e, &(struct guest_vm){.name = rows[i].name}),
					    0xffffffff81000000),
				    "here");
	}
	memset(longest, 'a', NAME_MAX + 1);
	longest[NAME_MAX + 1] = '\0';
	assert_int_equal(guest_dir_encode(longest, part, sizeof(part)), -ENAMETOOLONG);
	assert_int_equal(guest_dir_encode("", part, sizeof(part)), -EINVAL);
	check_state(load(e, &(struct guest_vm){.name = longest}), SYMBOLS_NONE, "");
}

/* Nothing in the folder leads anywhere else, and nothing of it is waited for. */
static void no_links_no_fifos(void **state)
{
	struct env *e = *state;

	put(e, "elsewhere", "ffffffff81000000 T elsewhere\n");
	put(e, "kvmtop/guests/web01/modules", "");
	assert_int_equal(symlink("../../../elsewhere", path_in(e, "kvmtop/guests/web01/kallsyms")),
			 0);
	check_state(load(e, &web01), SYMBOLS_NONE, "kallsyms: symbolic links are not");
	assert_int_equal(unlink(path_in(e, "kvmtop/guests/web01/kallsyms")), 0);
	assert_int_equal(mkfifo(path_in(e, "kvmtop/guests/web01/kallsyms"), 0600), 0);
	check_state(load(e, &web01), SYMBOLS_NONE, "kallsyms: no regular file");
	/* The folder itself as a link. */
	put(e, "other/kallsyms", "ffffffff81000000 T elsewhere\n");
	assert_int_equal(symlink("../../other", path_in(e, "kvmtop/guests/db01")), 0);
	check_state(load(e, &(struct guest_vm){.name = "db01"}), SYMBOLS_NONE,
		    "db01: no folder (symbolic links are not followed");
	/* Where everybody may write, nobody's word counts. */
	put(e, "kvmtop/guests/open/kallsyms", "ffffffff81000000 T a\n");
	assert_int_equal(chmod(path_in(e, "kvmtop/guests/open"), 0777), 0);
	check_state(load(e, &(struct guest_vm){.name = "open"}), SYMBOLS_NONE,
		    "everybody may write there");
}

static void options_in_their_order(void **state)
{
	static const char one[] = "ffffffff81000000 T %s\nffffffff81000100 T _etext\n";
	static const char *const files[] = {"all", "mine", "folder", "mount"};
	struct env *e = *state;
	char text[128];

	for (size_t i = 0; i < N(files); i++) {
		snprintf(text, sizeof(text), "ffffffff81000000 T %s\nffffffff81000100 T _etext\n",
			 files[i]);
		put(e,
		    i == 2   ? "kvmtop/guests/web01/kallsyms"
		    : i == 3 ? "mnt/web01/proc/kallsyms"
			     : files[i],
		    text);
	}
	(void)one;
	give(e, GUEST_KALLSYMS, NULL, path_in(e, "all"));
	assert_string_equal(name_at(load(e, &web01), 0xffffffff81000000), "folder");
	unlink(path_in(e, "kvmtop/guests/web01/kallsyms"));
	assert_string_equal(name_at(load(e, &web01), 0xffffffff81000000), "all");
	give(e, GUEST_MOUNT, NULL, path_in(e, "mnt"));
	assert_string_equal(name_at(load(e, &web01), 0xffffffff81000000), "mount");
	give(e, GUEST_KALLSYMS, "8f3c-4", path_in(e, "mine"));
	assert_string_equal(name_at(load(e, &web01), 0xffffffff81000000), "mine");
	assert_string_equal(
		name_at(load(e, &(struct guest_vm){.name = "db01"}), 0xffffffff81000000), "all");
	/* One that is not there is said, when nothing else is. */
	take_back(e);
	give(e, GUEST_KALLSYMS, "web01", "/nowhere/kallsyms");
	check_state(load(e, &web01), SYMBOLS_NONE, "/nowhere/kallsyms: No such file");
	take_back(e);
}

static void packed_files(void **state)
{
	struct env *e = *state;
	char cmd[400];

	copy(e, DATA "kallsyms-6.1.txt", "plain");
	put(e, "kvmtop/guests/web01/modules", "");
	snprintf(cmd, sizeof(cmd), "cd %s && gzip -c plain >kvmtop/guests/web01/kallsyms.gz",
		 e->dir);
	assert_int_equal(system(cmd), 0);
	check_state(load(e, &web01), SYMBOLS_OK, "");
	snprintf(cmd, sizeof(cmd),
		 "cd %s/kvmtop/guests/web01 && rm kallsyms.gz && xz -c ../../../plain >kallsyms",
		 e->dir);
	assert_int_equal(system(cmd), 0);
	check_state(load(e, &web01), SYMBOLS_OK, "");
	snprintf(cmd, sizeof(cmd), "cd %s/kvmtop/guests/web01 && truncate -s 900 kallsyms", e->dir);
	assert_int_equal(system(cmd), 0);
	check_state(load(e, &web01), SYMBOLS_REFUSED, "broken gzip or xz");
}

/* --- what is refused --- */

static void zeros(void **state)
{
	struct env *e = *state;
	struct loaded l;

	put(e, "kvmtop/guests/web01/kallsyms", "0000000000000000 T _text\n0000000000000000 t a\n");
	l = load(e, &web01);
	assert_non_null(strstr(l.status.mend, "kptr_restrict=1"));
	assert_non_null(strstr(l.status.mend, "kvmtop guest-symbols web01"));
	check_state(l, SYMBOLS_REFUSED, "addresses are zeros");
}

/* Lists that no kernel has: their own words, and no hour of work. */
static void too_much(void **state)
{
	struct env *e = *state;
	FILE *f;

	put(e, "kvmtop/guests/web01/kallsyms", "");
	f = fopen(path_in(e, "kvmtop/guests/web01/kallsyms"), "w");
	assert_non_null(f);
	for (unsigned i = 0; i < 70000; i++)
		fprintf(f, "%llx t f%u\n", 0x1000000000 + i * (32ull << 20), i);
	fclose(f);
	check_state(load(e, &web01), SYMBOLS_REFUSED, "more symbols or modules than any kernel");
	f = fopen(path_in(e, "kvmtop/guests/web01/kallsyms"), "w");
	assert_non_null(f);
	for (unsigned i = 0; i < 60001; i++)
		fprintf(f, "%llx t f%u\t[m%u]\n", 0xffffffffa0000000 + i * 16ull, i, i);
	fclose(f);
	check_state(load(e, &web01), SYMBOLS_REFUSED, "more symbols or modules than any kernel");
}

static void set_age(const struct env *e, const char *name, time_t seconds)
{
	struct timespec t[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};

	assert_int_equal(utimensat(AT_FDCWD, path_in(e, name), t, 0), 0);
}

/* From before the VM was started: where KASLR moves the kernel it has other addresses since. */
static void of_another_boot(void **state)
{
	struct env *e = *state;

	put(e, "kvmtop/guests/web01/kallsyms",
	    "ffffffff9c600000 T _stext\nffffffff9c600100 T f\nffffffff9c600200 T _etext\n");
	check_state(load(e, &web01), SYMBOLS_OK, "");
	set_age(e, "kvmtop/guests/web01/kallsyms", 7 * 86400);
	check_state(load(e, &web01), SYMBOLS_REFUSED, "before this VM was started");
	/* A kernel that does not move is where it was. */
	put(e, "kvmtop/guests/web01/kallsyms",
	    "ffffffff81000000 T _stext\nffffffff81000100 T f\nffffffff81000200 T _etext\n");
	set_age(e, "kvmtop/guests/web01/kallsyms", 7 * 86400);
	check_state(load(e, &web01), SYMBOLS_OK, "");
	/* Its modules need not be. */
	put(e, "kvmtop/guests/web01/kallsyms",
	    "ffffffff81000000 T _stext\nffffffff81000100 T f\nffffffff81000200 T _etext\n"
	    "ffffffffc0a00000 t virtnet_poll\t[virtio_net]\n");
	assert_string_equal(name_at(load(e, &web01), 0xffffffffc0a00010), "virtnet_poll");
	set_age(e, "kvmtop/guests/web01/kallsyms", 7 * 86400);
	assert_string_equal(name_at(load(e, &web01), 0xffffffffc0a00010), "");
	assert_string_equal(name_at(load(e, &web01), 0xffffffff81000110), "f");
	check_state(load(e, &web01), SYMBOLS_PARTIAL, "its modules are elsewhere since");
	/* Nor those of an older list of modules beside a new kallsyms. */
	put(e, "kvmtop/guests/web01/modules", "kvm 8192 0 - Live 0xffffffffc0304000\n");
	put(e, "kallsyms", "ffffffff81000000 T _stext\nffffffff81000100 T f\n");
	give(e, GUEST_KALLSYMS, "web01", path_in(e, "kallsyms"));
	check_state(load(e, &web01), SYMBOLS_PARTIAL, "they are shown by module");
	set_age(e, "kvmtop/guests/web01/modules", 7 * 86400);
	check_state(load(e, &web01), SYMBOLS_OK, "");
	take_back(e);
}

/* --- vmlinux --- */

static const struct made_symbol kernel_symbols[] = {
	{"_stext", 0xffffffff81000000, 0, STT_NOTYPE, STB_GLOBAL, false},
	{"default_idle", 0xffffffff81000100, 0x20, STT_FUNC, STB_GLOBAL, false},
	{"native_cpuid", 0xffffffff81000200, 0x20, STT_FUNC, STB_GLOBAL, false},
	{"native_write_msr", 0xffffffff81000300, 0x20, STT_FUNC, STB_GLOBAL, false},
};
static const uint8_t kernel_id[8] = {0x6a, 0x2b, 0x4a, 0xc7, 0x75, 0x85, 0xb8, 0xcf};

/* With the instructions where their functions are. */
static void put_vmlinux(const struct env *e, const char *name)
{
	uint8_t code[0x500] = {0};
	struct made_elf f = {.class = ELFCLASS64,
			     .data = ELFDATA2LSB,
			     .machine = EM_X86_64,
			     .text = 0xffffffff81000000,
			     .text_size = 0x4000,
			     .code = code,
			     .code_len = sizeof(code),
			     .symbol = kernel_symbols,
			     .n = N(kernel_symbols),
			     .build_id = kernel_id};

	code[0x100 + 8] = 0xf4;
	code[0x100 + 0x20] = 0xf4;
	code[0x200 + 4] = 0x0f;
	code[0x200 + 5] = 0xa2;
	code[0x300 + 6] = 0x0f;
	code[0x300 + 7] = 0x30;
	close(made_elf(&f, path_in(e, name)));
}

static void vmlinux_and_its_slide(void **state)
{
	struct env *e = *state;
	struct loaded l;

	put(e, "kvmtop/guests/web01/modules", "kvm 8192 0 - Live 0xffffffffc0304000\n");
	put_vmlinux(e, "kvmtop/guests/web01/vmlinux");
	l = load(e, &web01);
	assert_true(l.wants_evidence);
	check_state(l, SYMBOLS_REFUSED, "KASLR slide is not known");
	/* From a list that has little more than _stext. */
	put(e, "kvmtop/guests/web01/kallsyms", "ffffffff9c600000 T _stext\n");
	assert_string_equal(name_at(load(e, &web01), 0xffffffff9c600210), "native_cpuid");
	check_state(load(e, &web01), SYMBOLS_PARTIAL, "no symbols of modules");
	/* Not by whole pages: no slide of this kernel. */
	put(e, "kvmtop/guests/web01/kallsyms", "ffffffff9c600123 T _stext\n");
	check_state(load(e, &web01), SYMBOLS_REFUSED, "another kernel's than the guest runs");
	unlink(path_in(e, "kvmtop/guests/web01/kallsyms"));
	put(e, "kvmtop/guests/web01/vmcoreinfo",
	    "OSRELEASE=6.1\nBUILD-ID=6a2b4ac77585b8cf\nKERNELOFFSET=1b600000\n");
	assert_string_equal(name_at(load(e, &web01), 0xffffffff9c600210), "native_cpuid");
	/* Of an earlier boot. */
	set_age(e, "kvmtop/guests/web01/vmcoreinfo", 7 * 86400);
	check_state(load(e, &web01), SYMBOLS_REFUSED, "KASLR slide is not known");
	put(e, "kvmtop/guests/web01/vmcoreinfo",
	    "BUILD-ID=6a2b4ac77585b8d0\nKERNELOFFSET=1b600000\n");
	check_state(load(e, &web01), SYMBOLS_REFUSED,
		    "build-id 6a2b4ac77585b8cf, the guest's is 6a2b4ac77585b8d0");
	unlink(path_in(e, "kvmtop/guests/web01/vmcoreinfo"));
}

/* A process with the command line of a VMM; it lives until `to` is closed. */
static pid_t start_vmm(const char *kernel, const char *append, int *to)
{
	int p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (pid == 0) {
		dup2(p[0], 0);
		close(p[1]);
		execl("/bin/sh", "qemu", "-c", "read -r x", "qemu", "-kernel", kernel, "-append",
		      append, (char *)NULL);
		_exit(1);
	}
	close(p[0]);
	*to = p[1];
	return pid;
}

/* Before that its command line is ours. */
static void wait_until_vmm(pid_t pid)
{
	char path[40], text[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	for (int i = 0; i < 2000 && strcmp(text, "qemu") != 0; i++) {
		FILE *f = fopen(path, "r");

		if (!f || !fread(text, 1, sizeof(text) - 1, f))
			text[0] = '\0';
		if (f)
			fclose(f);
		usleep(1000);
	}
	assert_string_equal(text, "qemu");
}

/* Of a VMM that was told what to boot; the map's name at an address. */
static const char *booted(struct env *e, const char *kernel, const char *append, uint64_t addr,
			  enum symbols_state *state)
{
	static char name[128];
	struct loaded l = {0};
	int to;
	pid_t pid = start_vmm(kernel, append, &to);

	wait_until_vmm(pid);
	load_guest(&e->c, &(struct guest_vm){.name = "web01", .pid = pid}, NULL, 0, &l);
	*state = l.status.state;
	snprintf(name, sizeof(name), "%s", name_at(l, addr));
	close(to);
	waitpid(pid, NULL, 0);
	return name;
}

/* What moves a kernel is in the bzImage around it, or told not to. */
static void kernel_of_the_command_line(void **state)
{
	struct env *e = *state;
	enum symbols_state st;

	put_vmlinux(e, "vmlinux");
	assert_string_equal(booted(e, path_in(e, "vmlinux"), "quiet", 0xffffffff81000210, &st),
			    "native_cpuid");
	assert_int_equal(st, SYMBOLS_PARTIAL);
	put(e, "bzImage", "nothing of use");
	give(e, GUEST_VMLINUX, NULL, path_in(e, "vmlinux"));
	booted(e, path_in(e, "bzImage"), "quiet nokaslr2", 0, &st);
	assert_int_equal(st, SYMBOLS_REFUSED);
	assert_string_equal(
		booted(e, path_in(e, "bzImage"), "quiet nokaslr", 0xffffffff81000210, &st),
		"native_cpuid");
	take_back(e);
}

static void vmlinux_of_another_kernel(void **state)
{
	struct env *e = *state;

	copy(e, DATA "notes-6.1.bin", "notes");
	put(e, "kvmtop/guests/web01/notes", "");
	put_vmlinux(e, "kvmtop/guests/web01/vmlinux");
	/* Notes whose build-id has 20 bytes that begin alike. */
	char cmd[300];

	snprintf(cmd, sizeof(cmd), "cp " DATA "notes-6.1.bin %s/kvmtop/guests/web01/notes", e->dir);
	assert_int_equal(system(cmd), 0);
	check_state(load(e, &web01), SYMBOLS_REFUSED, "another kernel's: build-id");
}

static void no_vmlinux(void **state)
{
	struct env *e = *state;
	char image[0x300] = "MZ";
	FILE *f;

	put(e, "text", "no kernel at all\n");
	give(e, GUEST_VMLINUX, "web01", path_in(e, "text"));
	check_state(load(e, &web01), SYMBOLS_REFUSED, "no ELF file");
	strcpy(image + 0x202, "HdrS");
	f = fopen(path_in(e, "text"), "w");
	fwrite(image, sizeof(image), 1, f);
	fclose(f);
	check_state(load(e, &web01), SYMBOLS_REFUSED, "bzImage has no symbols");
	take_back(e);
}

/* The exits of a guest say how far its kernel was moved. */
static void slide_from_exits(void **state)
{
	const uint64_t by = 0x1b600000;
	const struct symbols_evidence exits[] = {
		{0xffffffff81000204 + by, EVIDENCE_CPUID},
		{0xffffffff81000306 + by, EVIDENCE_MSR},
		{0xffffffff81000108 + by, EVIDENCE_HLT},
		{0xffffffff81000306 + by, EVIDENCE_MSR},
		{0x401000, EVIDENCE_CPUID}, /* the guest's user code */
	};
	struct env *e = *state;
	struct loaded l;

	put_vmlinux(e, "vmlinux");
	give(e, GUEST_VMLINUX, NULL, path_in(e, "vmlinux"));
	assert_string_equal(name_at(load_with(e, &web01, exits, N(exits)), 0xffffffff81000210 + by),
			    "native_cpuid");
	/* One place is no proof. */
	l = load_with(e, &web01, exits + 1, 1);
	assert_true(l.wants_evidence);
	check_state(l, SYMBOLS_REFUSED, "slide is not known");
	/* Exits at which this kernel has other instructions everywhere. */
	struct symbols_evidence wrong[4];

	for (size_t i = 0; i < N(wrong); i++)
		wrong[i] =
			(struct symbols_evidence){0xffffffff81001111 + by + i * 64, EVIDENCE_CPUID};
	check_state(load_with(e, &web01, wrong, N(wrong)), SYMBOLS_REFUSED, "slide is not known");
	take_back(e);
}

static bool polled(struct symbols *s)
{
	struct pollfd p = {.fd = symbols_fd(s), .events = POLLIN};

	assert_int_equal(poll(&p, 1, 20000), 1);
	return symbols_poll(s);
}

/* A busy guest may never show more than a few addresses: each new one is tried. */
static void one_more_exit_is_enough(void **state)
{
	const uint64_t by = 0x1b600000;
	const struct symbols_evidence exits[] = {
		{0xffffffff81000108 + by, EVIDENCE_HLT},
		{0xffffffff81000120 + by, EVIDENCE_HLT},
		{0xffffffff81000306 + by, EVIDENCE_MSR},
	};
	struct env *e = *state;
	struct symsource *src;
	struct symbols *s;
	struct symbol sym;

	put_vmlinux(e, "vmlinux");
	give(e, GUEST_VMLINUX, NULL, path_in(e, "vmlinux"));
	assert_int_equal(symbols_new(e->root, &e->files, &s), 0);
	src = symbols_guest(s, &web01);
	while (symsource_status(src)->state == SYMBOLS_LOADING)
		polled(s);
	symsource_evidence(src, exits, 2);
	polled(s);
	assert_int_equal(symsource_status(src)->state, SYMBOLS_REFUSED);
	symsource_evidence(src, exits + 2, 1);
	assert_true(polled(s));
	assert_true(symsource_lookup(src, 0xffffffff81000210 + by, &sym));
	assert_string_equal(sym.name, "native_cpuid");
	symbols_free(s);
	take_back(e);
}

/* --- what guest-symbols keeps --- */

#define BOOT_ID "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"

static void capture(void **state)
{
	struct env *e = *state;
	char *text = calloc(1, 1 << 20);
	struct guest_capture c;
	struct guest_home home;
	size_t n = 0;
	int dir;

	for (int i = 0; i < 3; i++) {
		static const char *const files[] = {DATA "kallsyms-6.1.txt", DATA "modules-6.1.txt",
						    DATA "notes-6.1.bin"};
		FILE *f = fopen(files[i], "r");

		n += fread(text + n, 1, (1 << 20) - n, f);
		fclose(f);
	}
	assert_int_equal(guest_capture_split(text, n, &c), 0);
	assert_string_equal(c.boot_id, "");
	memcpy(text + n, BOOT_ID "\n", sizeof(BOOT_ID));
	assert_int_equal(guest_capture_split(text, n + sizeof(BOOT_ID), &c), 0);
	assert_string_equal(c.boot_id, BOOT_ID);
	assert_int_equal(c.nmodules, 14);
	assert_int_equal(c.id.len, 20);
	assert_int_equal(c.notes_len, 504);
	assert_int_equal(guest_home_find(&home), 0);
	assert_string_equal(home.path, e->dir);
	dir = guest_dir_make(&home, "web01");
	assert_true(dir >= 0);
	assert_int_equal(guest_capture_keep(&c, dir), 0);
	check_state(load(e, &web01), SYMBOLS_OK, "");
	/* Of a kernel without modules: those of before are gone. */
	c.modules_len = 0;
	assert_int_equal(guest_capture_keep(&c, dir), 0);
	assert_int_equal(access(path_in(e, "kvmtop/guests/web01/modules"), F_OK), -1);
	assert_int_equal(access(path_in(e, "kvmtop/guests/web01/notes"), F_OK), 0);
	close(dir);
	free(text);
}

static void capture_through_a_terminal(void **state)
{
	char text[] =
		"ffffffff81000000 T a\r\nffffffff81000100 t b\t[kvm]\r\nkvm 114 1 a, Live 0x0\r\n"
		"cat: /sys/kernel/notes: No such file or directory\r\n" BOOT_ID "\r\n";
	struct guest_capture c;

	(void)state;
	assert_int_equal(guest_capture_split(text, strlen(text), &c), 0);
	assert_int_equal(c.facts.code, 2);
	assert_int_equal(c.nmodules, 1);
	assert_int_equal(c.notes_len, 0);
	assert_string_equal(c.boot_id, BOOT_ID);
	assert_null(memchr(c.kallsyms, '\r', c.kallsyms_len));
}

/* Under sudo it is the folder of whoever called it. */
static void home_of_the_caller(void **state)
{
	struct guest_home home;

	(void)state;
	if (geteuid() != 0)
		skip();
	setenv("SUDO_UID", "1", 1); /* daemon: a user that every Debian has */
	assert_int_equal(guest_home_find(&home), 0);
	assert_true(home.sudo);
	assert_int_equal(home.uid, 1);
	assert_string_equal(home.path, "/usr/sbin/.config");
	setenv("SUDO_UID", "0", 1);
	assert_int_equal(guest_home_find(&home), 0);
	assert_false(home.sudo);
	setenv("SUDO_UID", "1; rm", 1);
	assert_int_equal(guest_home_find(&home), 0);
	assert_false(home.sudo);
	unsetenv("SUDO_UID");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_known),
		TEST(own_folder),
		TEST(names_that_are_no_paths),
		TEST(no_links_no_fifos),
		TEST(options_in_their_order),
		TEST(packed_files),
		TEST(zeros),
		TEST(too_much),
		TEST(of_another_boot),
		TEST(vmlinux_and_its_slide),
		TEST(kernel_of_the_command_line),
		TEST(vmlinux_of_another_kernel),
		TEST(no_vmlinux),
		TEST(slide_from_exits),
		TEST(one_more_exit_is_enough),
		TEST(capture),
		TEST(capture_through_a_terminal),
		TEST(home_of_the_caller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
