// SPDX-License-Identifier: GPL-2.0-only
/* Files of others: what is opened at all, how much of it is read, and what unpacking may cost. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "bytes.h"
#include "temp_dir.h"

#define MANY (4u << 20)

static void put(const char *name, const void *data, size_t len)
{
	FILE *f = fopen(in_dir(name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	fclose(f);
}

static int read_path(const char *name, size_t limit, struct bytes *out)
{
	int fd = bytes_open(in_dir(name)), rc;

	assert_true(fd >= 0);
	rc = bytes_read(fd, limit, out);
	close(fd);
	return rc;
}

static void as_much_as_is_allowed(void **state)
{
	struct bytes b;

	(void)state;
	put("ten", "0123456789", 10);
	assert_int_equal(read_path("ten", 10, &b), 0);
	assert_int_equal(b.len, 10);
	assert_memory_equal(b.data, "0123456789", 10);
	bytes_free(&b);
	assert_int_equal(read_path("ten", 9, &b), -EFBIG);
	assert_null(b.data);
	put("nothing", "", 0);
	assert_int_equal(read_path("nothing", 10, &b), 0);
	assert_int_equal(b.len, 0);
	bytes_free(&b);
}

/* A few KiB that become megabytes: the limit is of what comes out. */
static void what_unpacks_to_too_much(void **state)
{
	uint8_t *zeros = calloc(1, MANY), packed[1 << 16];
	uLongf n = sizeof(packed);
	size_t xz = 0;
	struct bytes b;
	z_stream z = {.next_in = zeros,
		      .avail_in = MANY,
		      .next_out = packed,
		      .avail_out = sizeof(packed)};

	(void)state;
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	n = z.total_out;
	deflateEnd(&z);
	assert_int_equal(bytes_unpack(packed, n, MANY, &b), 0);
	assert_int_equal(b.len, MANY);
	bytes_free(&b);
	assert_int_equal(bytes_unpack(packed, n, MANY - 1, &b), -EFBIG);
	assert_int_equal(bytes_unpack(packed, n - 9, MANY, &b), -EBADMSG); /* cut off */
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, zeros, MANY, packed,
						 &xz, sizeof(packed)),
			 LZMA_OK);
	assert_int_equal(bytes_unpack(packed, xz, MANY, &b), 0);
	assert_int_equal(b.len, MANY);
	bytes_free(&b);
	assert_int_equal(bytes_unpack(packed, xz, MANY - 1, &b), -EFBIG);
	assert_int_equal(bytes_unpack(packed, xz - 9, MANY, &b), -EBADMSG);
	assert_int_equal(bytes_unpack("plain text", 10, MANY, &b), -ENOENT);
	free(zeros);
}

static int open_beneath(const char *path)
{
	int at = open(dir, O_PATH | O_DIRECTORY), fd = bytes_open_beneath(at, path);

	close(at);
	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* Nothing but a regular file, and nothing on the way but folders. */
static void what_is_not_opened(void **state)
{
	int at = open(dir, O_PATH | O_DIRECTORY), fd;

	(void)state;
	mkdir(in_dir("sub"), 0700);
	put("sub/file", "x", 1);
	assert_int_equal(symlink("sub/file", in_dir("link")), 0);
	assert_int_equal(symlink("sub", in_dir("way")), 0);
	assert_int_equal(symlink("/etc/passwd", in_dir("out")), 0);
	assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
	assert_int_equal(open_beneath("sub/file"), 0);
	assert_int_equal(open_beneath("link"), -ELOOP);
	assert_int_equal(open_beneath("way/file"), -ELOOP);
	assert_int_equal(open_beneath("../../etc/passwd"), -EXDEV);
	assert_int_equal(open_beneath("/etc/passwd"), -EXDEV);
	assert_int_equal(open_beneath("fifo"), -EINVAL);
	assert_int_equal(open_beneath("sub"), -EINVAL);
	assert_int_equal(open_beneath("none"), -ENOENT);
	assert_int_equal(bytes_open("/dev/null"), -EINVAL);
	/* Within a root a link is followed, but stays in it. */
	fd = bytes_open_in_root(at, "/way/file");
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(bytes_open_in_root(at, "out"), -ENOENT);
	close(at);
}

/* From here on this process has no openat2, as kernels before 5.6 and some containers. */
static bool without_openat2(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {.len = sizeof(f) / sizeof(f[0]), .filter = f};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) == 0;
}

/* The number of the first thing that is not as it should be; 0: none. */
static int walked(void)
{
	int at = open(dir, O_PATH | O_DIRECTORY), fd;

	if (open_beneath("deep/er/file") != 0)
		return 1;
	if (open_beneath("short") != -ELOOP || open_beneath("passage/er/file") != -ENOTDIR)
		return 2;
	if (open_beneath("deep/../deep/er/file") != -EXDEV || open_beneath("/etc/passwd") != -EXDEV)
		return 3;
	if (open_beneath("deep/er") != -EINVAL || open_beneath("deep/none") != -ENOENT)
		return 4;
	fd = bytes_open_in_root(at, "/deep/er/file");
	return fd < 0 ? 5 : 0;
}

static void kernels_without_openat2(void **state)
{
	int status = 0;
	pid_t pid;

	(void)state;
	mkdir(in_dir("deep"), 0700);
	mkdir(in_dir("deep/er"), 0700);
	put("deep/er/file", "x", 1);
	assert_int_equal(symlink("deep/er/file", in_dir("short")), 0);
	assert_int_equal(symlink("deep", in_dir("passage")), 0);
	pid = fork();
	if (pid == 0)
		_exit(without_openat2() ? walked() : 77);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip(); /* no seccomp here */
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_much_as_is_allowed),
		cmocka_unit_test(what_unpacks_to_too_much),
		cmocka_unit_test(what_is_not_opened),
		cmocka_unit_test(kernels_without_openat2),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
