// SPDX-License-Identifier: GPL-2.0-only
/* Finding the files of a guest's kernel (guest_files.h). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"
#include "guest_dir.h"
#include "guest_files.h"
#include "sysroot.h"

#define CMDLINE_MAX (1u << 20)

void guest_found_close(struct guest_found *f)
{
	for (int i = 0; i < FOUND_NR; i++) {
		if (f->fd[i] >= 0)
			close(f->fd[i]);
		f->fd[i] = -1;
	}
}

/* Takes a descriptor for a kind that has none yet. */
static void take(struct guest_found *f, enum found_file what, int fd, const char *source)
{
	if (fd < 0)
		return;
	if (f->fd[what] >= 0) {
		close(fd);
		return;
	}
	f->fd[what] = fd;
	snprintf(f->name[what], sizeof(f->name[what]), "%.*s", SYMBOLS_TEXT - 1, source);
}

/* --- options --- */

static bool is_for(const struct guest_file_option *o, const struct guest_vm *vm)
{
	char pid[16];

	if (!o->vm)
		return false;
	snprintf(pid, sizeof(pid), "%d", (int)vm->pid);
	return (vm->name && strcmp(o->vm, vm->name) == 0) ||
	       (vm->uuid && strcmp(o->vm, vm->uuid) == 0) || strcmp(o->vm, pid) == 0;
}

static void take_options(const struct guest_files *files, const struct guest_vm *vm, bool for_all,
			 struct guest_found *f)
{
	static const enum found_file kind[] = {
		[GUEST_KALLSYMS] = FOUND_KALLSYMS,
		[GUEST_MODULES] = FOUND_MODULES,
		[GUEST_VMLINUX] = FOUND_VMLINUX,
	};

	for (size_t i = 0; files && i < files->n; i++) {
		const struct guest_file_option *o = &files->option[i];
		int fd;

		if (o->what >= GUEST_MOUNT || (for_all ? o->vm != NULL : !is_for(o, vm)))
			continue;
		fd = bytes_open(o->file);
		take(f, kind[o->what], fd, o->file);
		if (fd < 0 && !f->why[0])
			snprintf(f->why, sizeof(f->why), "%s: %s", o->file, bytes_error(fd));
	}
}

/* --- the folder that guest-symbols fills --- */

static const char *const names[FOUND_NR] = {
	[FOUND_KALLSYMS] = "kallsyms",	   [FOUND_MODULES] = "modules",
	[FOUND_VMLINUX] = "vmlinux",	   [FOUND_NOTES] = "notes",
	[FOUND_VMCOREINFO] = "vmcoreinfo",
};

/* As it is, or packed by hand. */
static int open_packed(int dir, const char *name)
{
	static const char *const ends[] = {"", ".gz", ".xz"};
	char path[64];
	int fd = -ENOENT;

	for (size_t i = 0; fd == -ENOENT && i < sizeof(ends) / sizeof(ends[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", name, ends[i]);
		fd = bytes_open_beneath(dir, path);
	}
	return fd;
}

static void take_folder(const struct guest_home *home, const char *vm, struct guest_found *f)
{
	char path[PATH_MAX + NAME_MAX], shown[PATH_MAX + NAME_MAX + 16];
	int dir = guest_dir_open(home, vm);

	guest_dir_path(home, vm, path, sizeof(path));
	if (dir < 0) {
		if (dir != -ENOENT && dir != -EINVAL && !f->why[0])
			snprintf(f->why, sizeof(f->why), "%.180s: %s", path, guest_dir_error(dir));
		return;
	}
	for (int i = 0; i < FOUND_NR; i++) {
		int fd = open_packed(dir, names[i]);

		snprintf(shown, sizeof(shown), "%s/%s", path, names[i]);
		if (fd < 0 && fd != -ENOENT && !f->why[0])
			snprintf(f->why, sizeof(f->why), "%.200s: %s", shown, bytes_error(fd));
		f->own[i] |= fd >= 0 && f->fd[i] < 0;
		take(f, (enum found_file)i, fd, shown);
	}
	close(dir);
}

static void take_folders(const struct guest_vm *vm, struct guest_found *f)
{
	struct guest_home home;

	if (guest_home_find(&home) < 0)
		return;
	if (vm->name)
		take_folder(&home, vm->name, f);
	if (vm->uuid && f->fd[FOUND_KALLSYMS] < 0 && f->fd[FOUND_VMLINUX] < 0)
		take_folder(&home, vm->uuid, f);
}

/* --- a guest's root that is mounted here --- */

static void take_root(int dir, const char *path, struct guest_found *f)
{
	static const struct {
		enum found_file what;
		const char *path;
	} in[] = {
		{FOUND_KALLSYMS, "proc/kallsyms"},
		{FOUND_MODULES, "proc/modules"},
		{FOUND_NOTES, "sys/kernel/notes"},
	};
	char shown[SYMBOLS_TEXT];

	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		snprintf(shown, sizeof(shown), "%.200s/%s", path, in[i].path);
		take(f, in[i].what, bytes_open_in_root(dir, in[i].path), shown);
	}
}

/* A name as one part of a path; guests' names are not for us to make paths of otherwise. */
static bool is_part(const char *name)
{
	return name && *name && !strchr(name, '/') && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0;
}

static void take_mount(const char *base, const char *part, struct guest_found *f)
{
	char path[PATH_MAX];
	int dir;

	if (snprintf(path, sizeof(path), "%s%s%s", base, part ? "/" : "", part ? part : "") >=
	    (int)sizeof(path))
		return;
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return;
	take_root(dir, path, f);
	close(dir);
}

static void take_mounts(const struct guest_files *files, const struct guest_vm *vm,
			struct guest_found *f)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)vm->pid);
	for (size_t i = 0; files && i < files->n; i++) {
		const struct guest_file_option *o = &files->option[i];
		const char *parts[] = {vm->name, vm->uuid, pid};

		if (o->what != GUEST_MOUNT)
			continue;
		if (o->vm && is_for(o, vm))
			take_mount(o->file, NULL, f);
		for (size_t k = 0; !o->vm && k < 3; k++)
			if (is_part(parts[k]) && f->fd[FOUND_KALLSYMS] < 0)
				take_mount(o->file, parts[k], f);
	}
}

/* --- what the VMM boots --- */

/* The value of -NAME, --NAME or --NAME=…; NULL: none. Words of text end with NUL. */
static const char *option_of(const char *text, size_t len, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; p < text + len; p += strlen(p) + 1) {
		const char *q = p + (p[0] == '-') + (p[0] == '-' && p[1] == '-');

		if (q == p || strncmp(q, name, n) != 0)
			continue;
		if (q[n] == '=')
			return q + n + 1;
		if (!q[n] && p + strlen(p) + 1 < text + len)
			return p + strlen(p) + 1;
	}
	return NULL;
}

static int read_cmdline(const struct sysroot *root, pid_t pid, struct bytes *out)
{
	char path[40];
	int fd, rc;

	snprintf(path, sizeof(path), "proc/%d/cmdline", (int)pid);
	fd = sysroot_openat(root, path, O_RDONLY);
	if (fd < 0)
		return fd;
	rc = bytes_read(fd, CMDLINE_MAX, out);
	close(fd);
	/* What the process wrote over it may end anywhere. */
	if (!rc && out->len && out->data[out->len - 1] != '\0')
		out->data[--out->len] = '\0';
	return rc;
}

/* The path as the VMM sees it: its root and its working folder are not ours. */
static int open_of_process(const struct sysroot *root, pid_t pid, const char *path)
{
	char base[40];
	int dir, fd;

	snprintf(base, sizeof(base), "proc/%d/%s", (int)pid, path[0] == '/' ? "root" : "cwd");
	dir = sysroot_openat(root, base, O_PATH | O_DIRECTORY);
	if (dir < 0)
		return dir;
	fd = path[0] == '/' ? bytes_open_in_root(dir, path) : bytes_open_beneath(dir, path);
	close(dir);
	return fd;
}

static void take_kernel(const struct sysroot *root, pid_t pid, struct guest_found *f)
{
	struct bytes cmdline;
	const char *path;
	int fd;

	if (read_cmdline(root, pid, &cmdline) < 0)
		return;
	path = option_of(cmdline.data, cmdline.len, "kernel");
	if (path && *path) {
		fd = open_of_process(root, pid, path);
		f->booted = fd >= 0;
		take(f, FOUND_VMLINUX, fd, path);
		if (fd < 0)
			snprintf(f->why, sizeof(f->why), "%.180s: %s", path, bytes_error(fd));
	}
	bytes_free(&cmdline);
}

bool guest_has_nokaslr(const struct sysroot *root, pid_t pid)
{
	static const char *const options[] = {"append", "cmdline", "params"};
	struct bytes cmdline;
	bool found = false;

	if (read_cmdline(root, pid, &cmdline) < 0)
		return false;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		const char *p = option_of(cmdline.data, cmdline.len, options[i]);

		while (p && *p && !found) {
			size_t n = strcspn(p, " ");

			found = n == 7 && memcmp(p, "nokaslr", 7) == 0;
			p += n + strspn(p + n, " ");
		}
	}
	bytes_free(&cmdline);
	return found;
}

bool guest_files_find(const struct sysroot *root, const struct guest_files *files,
		      const struct guest_vm *vm, enum found_where where, struct guest_found *out)
{
	*out = (struct guest_found){.fd = {-1, -1, -1, -1, -1}};
	switch (where) {
	case WHERE_VM:
		take_options(files, vm, false, out);
		take_folders(vm, out);
		break;
	case WHERE_MOUNT:
		take_mounts(files, vm, out);
		break;
	case WHERE_ALL:
		take_options(files, vm, true, out);
		break;
	case WHERE_KERNEL:
		take_kernel(root, vm->pid, out);
		break;
	case WHERE_NR:
		break;
	}
	return out->fd[FOUND_KALLSYMS] >= 0 || out->fd[FOUND_VMLINUX] >= 0;
}
