// SPDX-License-Identifier: GPL-2.0-only
/* Paths below a root: links stay inside, short and long files, the real host. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "made_tree.h"
#include "sysroot.h"

struct tree {
	char dir[64];
	struct sysroot *root;
};

static void put(const struct tree *t, const char *path, const char *text)
{
	tree_put(t->dir, path, text);
}

static void make_dir(const struct tree *t, const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", t->dir, path);
	assert_int_equal(mkdir(full, 0755), 0);
}

static void make_link(const struct tree *t, const char *to, const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/%s", t->dir, path);
	assert_int_equal(symlink(to, full), 0);
}

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	snprintf(t->dir, sizeof(t->dir), "/tmp/kvmtop-root-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	make_dir(t, "proc");
	make_dir(t, "proc/1");
	make_dir(t, "proc/1/fd");
	put(t, "proc/stat", "cpu 1 2 3\n");
	put(t, "hostname", "inside\n");
	make_link(t, "/hostname", "proc/absolute");
	make_link(t, "../../../../../../hostname", "proc/climbing");
	make_link(t, "/etc/passwd", "proc/escaping");
	make_link(t, "anon_inode:kvm-vm", "proc/1/fd/9");
	assert_int_equal(sysroot_open(t->dir, &t->root), 0);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct tree *t = *state;

	sysroot_close(t->root);
	tree_remove(t->dir);
	free(t);
	return 0;
}

static void reads_below_the_root(void **state)
{
	struct tree *t = *state;
	char buf[64];

	assert_int_equal(sysroot_read(t->root, "proc/stat", buf, sizeof(buf)), 10);
	assert_string_equal(buf, "cpu 1 2 3\n");
	assert_int_equal(sysroot_read(t->root, "/proc/stat", buf, sizeof(buf)), 10);
	assert_int_equal(sysroot_readf(t->root, buf, sizeof(buf), "proc/%s", "stat"), 10);
	assert_int_equal(sysroot_read(t->root, "proc/none", buf, sizeof(buf)), -ENOENT);
	assert_string_equal(buf, "");
	assert_string_equal(sysroot_dir(t->root), t->dir);
	assert_false(sysroot_is_host(t->root));
}

static void links_stay_inside(void **state)
{
	struct tree *t = *state;
	char buf[64];

	assert_int_equal(sysroot_read(t->root, "proc/absolute", buf, sizeof(buf)), 7);
	assert_string_equal(buf, "inside\n");
	assert_int_equal(sysroot_read(t->root, "proc/climbing", buf, sizeof(buf)), 7);
	assert_int_equal(sysroot_read(t->root, "proc/escaping", buf, sizeof(buf)), -ENOENT);
	assert_int_equal(sysroot_read(t->root, "../../../etc/passwd", buf, sizeof(buf)), -ENOENT);
}

static void what_a_file_is(void **state)
{
	struct tree *t = *state;
	struct sysroot *host;
	struct stat st, own;

	assert_int_equal(sysroot_stat(t->root, "proc/stat", &st), 0);
	assert_int_equal(st.st_size, 10);
	assert_int_equal(sysroot_stat(t->root, "/proc/absolute", &st), 0);
	assert_int_equal(st.st_size, 7);
	assert_int_equal(sysroot_stat(t->root, "proc/escaping", &st), -ENOENT);
	assert_int_equal(sysroot_open(NULL, &host), 0);
	assert_int_equal(stat("/proc/self", &own), 0);
	assert_int_equal(sysroot_stat(host, "proc/self", &st), 0);
	assert_true(st.st_dev == own.st_dev && st.st_ino == own.st_ino);
	assert_int_equal(sysroot_stat(host, "proc/none", &st), -ENOENT);
	sysroot_close(host);
}

static void reads_links(void **state)
{
	struct tree *t = *state;
	char buf[64];

	assert_int_equal(sysroot_readlinkf(t->root, buf, sizeof(buf), "proc/%d/fd/%d", 1, 9), 17);
	assert_string_equal(buf, "anon_inode:kvm-vm");
	assert_int_equal(sysroot_readlinkf(t->root, buf, sizeof(buf), "proc/stat"), -EINVAL);
	assert_int_equal(sysroot_readlinkf(t->root, buf, sizeof(buf), "proc/2/fd"), -ENOENT);
}

static void a_file_that_is_too_long_is_said(void **state)
{
	struct tree *t = *state;
	char buf[10], fits[11];

	assert_int_equal(sysroot_read(t->root, "proc/stat", buf, sizeof(buf)), -EFBIG);
	assert_string_equal(buf, "cpu 1 2 3");
	assert_int_equal(sysroot_read(t->root, "proc/stat", fits, sizeof(fits)), 10);
}

static void a_fixture_is_not_live(void **state)
{
	struct tree *t = *state;

	assert_false(sysroot_is_live(t->root));
}

static void a_fifo_does_not_hang(void **state)
{
	struct tree *t = *state;
	char full[128], buf[16];
	int fd;

	snprintf(full, sizeof(full), "%s/proc/fifo", t->dir);
	assert_int_equal(mkfifo(full, 0600), 0);
	assert_true(sysroot_read(t->root, "proc/fifo", buf, sizeof(buf)) <= 0);
	/* Nor one that is held open. */
	fd = sysroot_openat(t->root, "proc/fifo", O_RDONLY);
	assert_true(fd >= 0);
	assert_true(fd_read_all(fd, buf, sizeof(buf)) <= 0);
	close(fd);
}

static void lists_folders(void **state)
{
	struct tree *t = *state;
	DIR *d = sysroot_opendir(t->root, "proc/1");

	assert_non_null(d);
	closedir(d);
	errno = 0;
	assert_null(sysroot_opendir(t->root, "proc/7"));
	assert_int_equal(errno, ENOENT);
}

static void the_real_host(void **state)
{
	struct sysroot *r;
	char buf[4096], link[256];
	int fd;

	(void)state;
	assert_int_equal(sysroot_open(NULL, &r), 0);
	assert_true(sysroot_is_host(r));
	assert_true(sysroot_is_live(r));
	assert_true(sysroot_read(r, "proc/self/stat", buf, sizeof(buf)) > 0);
	assert_true(sysroot_readlinkf(r, link, sizeof(link), "proc/self") > 0);
	assert_int_equal(atoi(link), getpid());
	fd = sysroot_openat(r, "proc/self/stat", O_RDONLY);
	assert_true(fd >= 0);
	assert_true(fd_read_all(fd, buf, sizeof(buf)) > 0);
	assert_true(fd_read_all(fd, buf, sizeof(buf)) > 0); /* from the beginning each time */
	assert_int_equal(atoi(buf), getpid());
	close(fd);
	sysroot_close(r);
}

/* A held descriptor of a task that ended says ESRCH: its number's next owner is never read. */
static void a_held_descriptor_of_the_dead(void **state)
{
	struct sysroot *r;
	char buf[4096], path[64];
	int fd;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(sysroot_open("/", &r), 0);
	snprintf(path, sizeof(path), "proc/%d/stat", (int)pid);
	fd = sysroot_openat(r, path, O_RDONLY);
	assert_true(fd_read_all(fd, buf, sizeof(buf)) > 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(fd_read_all(fd, buf, sizeof(buf)), -ESRCH);
	close(fd);
	sysroot_close(r);
}

static void a_root_that_is_not_there(void **state)
{
	struct sysroot *r;

	(void)state;
	assert_int_equal(sysroot_open("/nonexistent-root", &r), -ENOENT);
	assert_null(r);
	sysroot_close(r);
}

/* A root with the host's own procfs in it, as a container sees it at /host. */
static void a_root_with_the_hosts_proc_is_live(void **state)
{
	struct sysroot *r, *sub;
	char buf[64];
	bool initial;

	(void)state;
	assert_int_equal(sysroot_open("/", &r), 0);
	initial = sysroot_readlinkf(r, buf, sizeof(buf), "proc/1/ns/pid") > 0 &&
		  !strcmp(buf, "pid:[4026531836]");
	/* "/." is the same directory without being recognised as the host itself. */
	assert_int_equal(sysroot_open("/.", &sub), 0);
	assert_false(sysroot_is_host(sub));
	if (initial)
		assert_true(sysroot_is_live(sub));
	sysroot_close(sub);
	sysroot_close(r);
}

int main(void)
{
#define WITH_TREE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_TREE(reads_below_the_root),
		WITH_TREE(links_stay_inside),
		WITH_TREE(what_a_file_is),
		WITH_TREE(reads_links),
		WITH_TREE(a_file_that_is_too_long_is_said),
		WITH_TREE(a_fixture_is_not_live),
		WITH_TREE(a_fifo_does_not_hang),
		WITH_TREE(lists_folders),
		cmocka_unit_test(the_real_host),
		cmocka_unit_test(a_held_descriptor_of_the_dead),
		cmocka_unit_test(a_root_that_is_not_there),
		cmocka_unit_test(a_root_with_the_hosts_proc_is_live),
	};

	return cmocka_run_group_tests_name("sysroot", tests, NULL, NULL);
}
