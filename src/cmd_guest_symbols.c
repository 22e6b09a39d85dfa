// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmtop guest-symbols NAME -- COMMAND: runs `COMMAND cat /proc/kallsyms …`, which must run in the
 * guest, and keeps what it prints where kvmtop looks for the symbols of a VM of that name.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bytes.h"
#include "commands.h"
#include "guest_capture.h"
#include "guest_dir.h"
#include "inventory.h"
#include "options.h"
#include "sysroot.h"
#include "text.h"
#include "vm_find.h"

static const char *const in_guest[] = {"cat", "/proc/kallsyms", "/proc/modules",
				       "/sys/kernel/notes", "/proc/sys/kernel/random/boot_id"};
enum { IN_GUEST = sizeof(in_guest) / sizeof(in_guest[0]) };

/* What a user or a guest chose, safe for a terminal. */
static const char *shown(const char *text, char *buf, size_t size)
{
	text_escape(buf, size, text);
	return buf;
}

/* The child: the command's words and ours. Its input and errors stay the terminal's. */
static void become(char **words, int n, int to)
{
	char **argv = calloc((size_t)n + IN_GUEST + 1, sizeof(*argv));
	char buf[200];
	int err;

	if (!argv || dup2(to, STDOUT_FILENO) < 0)
		_exit(126);
	memcpy(argv, words, (size_t)n * sizeof(*argv));
	memcpy(argv + n, in_guest, sizeof(in_guest));
	signal(SIGPIPE, SIG_DFL);
	execvp(argv[0], argv);
	err = errno;
	fprintf(stderr, "kvmtop: %s: %s\n", shown(argv[0], buf, sizeof(buf)), strerror(err));
	_exit(127);
}

/* All that the command prints, and its wait status. 0 or -errno. */
static int run(char **words, int n, struct bytes *out, int *status)
{
	int p[2], rc;
	pid_t pid;

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		become(words, n, p[1]);
	close(p[1]);
	if (pid < 0) {
		rc = -errno;
		close(p[0]);
		return rc;
	}
	rc = bytes_read(p[0], BYTES_TEXT_MAX, out); /* what is larger would not be read again */
	close(p[0]);
	while (waitpid(pid, status, 0) < 0 && errno == EINTR)
		;
	return rc;
}

/* Did the command end as one whose output is complete? */
static bool complete(const struct guest_capture *c, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	/* cat says 1 where one of the files is missing: a kernel without modules, say. */
	return WIFEXITED(status) && WEXITSTATUS(status) == 1 && (c->notes_len || c->nmodules);
}

static void how_it_ended(int status, char *buf, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(buf, size, "was ended by signal %d", WTERMSIG(status));
	else
		snprintf(buf, size, "ended with status %d", WEXITSTATUS(status));
}

/* One line on standard error that says what is wrong with the capture; false: nothing is. */
static bool complain(const char *name, const struct bytes *raw, const struct guest_capture *c,
		     int rc, int status)
{
	char first[80], buf[200], ended[60];

	how_it_ended(status, ended, sizeof(ended));
	if (rc == -EACCES) {
		fprintf(stderr,
			"kvmtop: %s: the addresses are zeros: the command must be root in the "
			"guest, "
			"and there kernel.kptr_restrict 0 or 1 (sysctl kernel.kptr_restrict=1)\n",
			name);
	} else if (rc == -EBADMSG && !raw->len && WIFEXITED(status) && WEXITSTATUS(status) == 127) {
		/* It was not found: the child, or a shell, has said so. */
	} else if (rc == -EBADMSG && !raw->len) {
		fprintf(stderr, "kvmtop: %s: the command printed nothing and %s\n", name, ended);
	} else if (rc == -EBADMSG) {
		snprintf(first, sizeof(first), "%.*s", (int)strcspn(raw->data, "\n"), raw->data);
		fprintf(stderr,
			"kvmtop: %s: the command did not print the guest's /proc/kallsyms but "
			"'%s'\n",
			name, shown(first, buf, sizeof(buf)));
	} else if (rc == -EFBIG || rc == -E2BIG) {
		fprintf(stderr, "kvmtop: %s: the command did not print a guest's kallsyms: %s\n",
			name, bytes_error(rc));
	} else if (rc) {
		fprintf(stderr, "kvmtop: %s: %s\n", name, strerror(-rc));
	} else if (!complete(c, status)) {
		fprintf(stderr,
			"kvmtop: %s: the command %s: what it printed may be cut off and is not "
			"kept\n",
			name, ended);
	} else {
		return false;
	}
	return true;
}

/* A forgotten ssh: the names would look right, and be those of another kernel. */
static bool is_of_this_host(const struct options *o, const struct guest_capture *c)
{
	char here[GUEST_BOOT_ID + 8] = "";
	struct sysroot *root;

	if (!c->boot_id[0] || sysroot_open(o->root, &root) < 0)
		return false;
	if (sysroot_read(root, "proc/sys/kernel/random/boot_id", here, sizeof(here)) < 0)
		here[0] = '\0';
	sysroot_close(root);
	return strncasecmp(here, c->boot_id, GUEST_BOOT_ID) == 0;
}

/* A name with a slip in it would be found out much later: by the pane, which has no names. */
static void warn_unknown(const struct options *o, const char *name, const char *as_shown)
{
	const struct inv_vm *vm;
	unsigned several = 0;
	struct vm_find *f;

	if (vm_find_open(o->root, &f) < 0)
		return;
	vm = vm_find(f, name, &several);
	/* It may be a title: the folder is looked for by name and UUID only. */
	if (several < 2 &&
	    !(vm && (strcmp(vm->name, name) == 0 || (vm->uuid && strcmp(vm->uuid, name) == 0))))
		fprintf(stderr,
			"kvmtop: %s: no VM of this name or UUID runs here now; the symbols are for "
			"one that does later\n",
			as_shown);
	vm_find_close(f);
}

/* From here on files are those of the user that called sudo, made with no more than her rights. */
static int become_user(const struct guest_home *home)
{
	if (!home->sudo)
		return 0;
	if (setgroups(0, NULL) < 0 || setegid(home->gid) < 0 || seteuid(home->uid) < 0)
		return -errno;
	return 0;
}

static int keep(const char *vm, const char *name, const struct guest_capture *c)
{
	char path[PATH_MAX + NAME_MAX] = "", where[PATH_MAX + NAME_MAX], id[20] = "";
	struct guest_home home;
	int rc = guest_home_find(&home), dir;

	if (rc) {
		fputs("kvmtop: no folder for symbols: neither XDG_CONFIG_HOME nor HOME is set\n",
		      stderr);
		return STATUS_FAILED;
	}
	guest_dir_path(&home, vm, path, sizeof(path));
	shown(path, where, sizeof(where));
	rc = become_user(&home);
	dir = rc ? rc : guest_dir_make(&home, vm);
	rc = dir < 0 ? dir : guest_capture_keep(c, dir);
	if (dir >= 0)
		close(dir);
	if (rc) {
		fprintf(stderr, "kvmtop: %s: %s\n", path[0] ? where : name, guest_dir_error(rc));
		return STATUS_FAILED;
	}
	build_id_text(&c->id, id, sizeof(id));
	printf("%s: %zu symbols, %zu modules%s%s, kept in %s\n", name, c->facts.code, c->nmodules,
	       id[0] ? ", build-id " : "", id, where);
	return STATUS_OK;
}

int cmd_guest_symbols(const struct options *o)
{
	struct guest_capture capture;
	struct bytes raw = {0};
	char name[400], part[NAME_MAX + 1];
	int status = 0, rc;

	if (o->nwords < 2) {
		fputs("kvmtop: guest-symbols: give the VM's name and a command that runs in it, as "
		      "in: kvmtop guest-symbols web01 -- ssh root@web01\n",
		      stderr);
		return STATUS_USAGE;
	}
	shown(o->words[0], name, sizeof(name));
	if (guest_dir_encode(o->words[0], part, sizeof(part)) < 0) {
		fprintf(stderr, "kvmtop: '%s': no name of a VM: empty or too long; its UUID does\n",
			name);
		return STATUS_USAGE;
	}
	rc = run(o->words + 1, o->nwords - 1, &raw, &status);
	if (!rc)
		rc = guest_capture_split(raw.data, raw.len, &capture);
	if (complain(name, &raw, &capture, rc, status)) {
		rc = STATUS_FAILED;
	} else if (is_of_this_host(o, &capture)) {
		fprintf(stderr,
			"kvmtop: %s: this host's own symbols came: give a command that runs its "
			"last words in the guest, as in: kvmtop guest-symbols web01 -- ssh "
			"root@web01\n",
			name);
		rc = STATUS_FAILED;
	} else {
		warn_unknown(o, o->words[0], name);
		rc = keep(o->words[0], name, &capture);
	}
	bytes_free(&raw);
	return rc;
}
