// SPDX-License-Identifier: GPL-2.0-only
/* Files of guests that are named on the command line: a wrong path or file is said at once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "guest_files.h"
#include "kallsyms.h"
#include "options_priv.h"

/* Some hundred lines tell what a file is. */
#define HEAD_BYTES (16u << 10)

static const char *const names[] = {
	[GUEST_KALLSYMS] = "guestkallsyms",
	[GUEST_MODULES] = "guestmodules",
	[GUEST_VMLINUX] = "guestvmlinux",
	[GUEST_MOUNT] = "guestmount",
};

/* What is wrong with a copy of kallsyms, judged by its first lines; NULL: nothing. */
static const char *wrong_kallsyms(const char *path)
{
	char head[HEAD_BYTES];
	struct bytes all = {0};
	const char *wrong = NULL;
	int fd = bytes_open(path), rc;
	ssize_t n;

	if (fd < 0)
		return bytes_error(fd);
	n = pread(fd, head, sizeof(head), 0);
	if (n < 0) {
		wrong = strerror(errno);
	} else if (!kallsyms_begins(head, (size_t)n)) {
		/* Packed, perhaps. */
		rc = bytes_read(fd, BYTES_TEXT_MAX, &all);
		if (rc)
			wrong = bytes_error(rc);
		else if (!kallsyms_begins(all.data, all.len))
			wrong = "no kallsyms";
	}
	bytes_free(&all);
	close(fd);
	return wrong;
}

/* What its first bytes tell of a vmlinux; a packed one is looked into when it is read. */
static const char *wrong_vmlinux(const char *path)
{
	static const char elf[] = {0x7f, 'E', 'L', 'F'}, gzip[] = {0x1f, (char)0x8b},
			  xz[] = {(char)0xfd, '7', 'z', 'X', 'Z'};
	char head[1024] = "";
	int fd = bytes_open(path);
	ssize_t n;

	if (fd < 0)
		return bytes_error(fd);
	n = pread(fd, head, sizeof(head), 0);
	close(fd);
	if (n < 0)
		return strerror(errno);
	if (memcmp(head, elf, sizeof(elf)) == 0 || memcmp(head, gzip, sizeof(gzip)) == 0 ||
	    memcmp(head, xz, sizeof(xz)) == 0)
		return NULL;
	if (guest_is_boot_image(head, (size_t)n))
		return "a bzImage has no symbols";
	return "no vmlinux: neither ELF nor packed";
}

/* What to give. */
static const char *const give[] = {
	[GUEST_KALLSYMS] = "a copy of the guest's /proc/kallsyms",
	[GUEST_MODULES] = "a copy",
	[GUEST_VMLINUX] = "the vmlinux of the guest's kernel",
	[GUEST_MOUNT] = "a folder of mounted guests",
};

/*
 * "FILE" or "NAME=FILE". A file whose name has a "=" behind a "/" (or that is there) is a file.
 * The strings are copies: the name is cut out.
 */
static int add_guest_file(struct options *o, enum guest_file what, const char *arg, char *err,
			  size_t size)
{
	const char *eq = strchr(arg, '='), *slash = strchr(arg, '/');
	struct guest_file_option *all, *one;
	char buf[40];

	if (eq && ((slash && slash < eq) || access(arg, F_OK) == 0))
		eq = NULL;
	if (!*arg || eq == arg || (eq && !eq[1]))
		return options_bad(err, size, "--%s '%s': give a path, or NAME=PATH for one guest",
				   names[what], options_shown(arg, buf, sizeof(buf)));
	all = reallocarray((void *)o->guest_files.option, o->guest_files.n + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	o->guest_files.option = all;
	one = &all[o->guest_files.n++];
	*one = (struct guest_file_option){.what = what,
					  .vm = eq ? strndup(arg, (size_t)(eq - arg)) : NULL,
					  .file = strdup(eq ? eq + 1 : arg)};
	return one->file && (!eq || one->vm) ? 0 : -ENOMEM;
}

int options_parse_guest_kallsyms(struct options *o, const char *arg, char *err, size_t size)
{
	return add_guest_file(o, GUEST_KALLSYMS, arg, err, size);
}

int options_parse_guest_modules(struct options *o, const char *arg, char *err, size_t size)
{
	return add_guest_file(o, GUEST_MODULES, arg, err, size);
}

int options_parse_guest_vmlinux(struct options *o, const char *arg, char *err, size_t size)
{
	return add_guest_file(o, GUEST_VMLINUX, arg, err, size);
}

int options_parse_guest_mount(struct options *o, const char *arg, char *err, size_t size)
{
	return add_guest_file(o, GUEST_MOUNT, arg, err, size);
}

static int check(const struct guest_file_option *g, char *err, size_t size)
{
	const char *option = names[g->what], *wrong = NULL;
	struct stat st;
	char buf[80];

	if (stat(g->file, &st) < 0 || access(g->file, R_OK) < 0)
		wrong = strerror(errno);
	else if (g->what == GUEST_MOUNT && !S_ISDIR(st.st_mode))
		wrong = "not a folder";
	else if (g->what != GUEST_MOUNT && !S_ISREG(st.st_mode))
		wrong = "not a regular file";
	else if (g->what == GUEST_KALLSYMS)
		wrong = wrong_kallsyms(g->file);
	else if (g->what == GUEST_VMLINUX)
		wrong = wrong_vmlinux(g->file);
	if (!wrong)
		return 0;
	return options_bad(err, size, "--%s '%s': %s: give the path of %s that can be read", option,
			   options_shown(g->file, buf, sizeof(buf)), wrong, give[g->what]);
}

static int check_root(const char *root, char *err, size_t size)
{
	const char *wrong = NULL;
	struct stat st;
	char buf[80];

	if (!root)
		return 0;
	if (stat(root, &st) < 0)
		wrong = strerror(errno);
	else if (!S_ISDIR(st.st_mode))
		wrong = "not a folder";
	if (!wrong)
		return 0;
	return options_bad(err, size,
			   "--root '%s': %s: give the folder that has the host's proc and sys",
			   options_shown(root, buf, sizeof(buf)), wrong);
}

int options_check_files(const struct options *o, char *err, size_t size)
{
	int rc = check_root(o->root, err, size);

	for (size_t i = 0; i < o->guest_files.n && !rc; i++)
		rc = check(&o->guest_files.option[i], err, size);
	return rc;
}
