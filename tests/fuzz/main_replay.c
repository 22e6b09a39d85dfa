/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The main of a fuzz target without libFuzzer: gives it the files named on the command line,
 * folders without descent, one after the other. An empty corpus is an error, for it would test
 * nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The whole file at path in a buffer of exactly its size, so that a sanitizer sees a read past it.
 */
static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct stat st;
	uint8_t *data = NULL;
	size_t size = 0;
	int err = 0;

	if (!f)
		return -errno;
	if (fstat(fileno(f), &st)) {
		err = -errno;
		goto out;
	}
	size = (size_t)st.st_size;
	data = malloc(size ? size : 1);
	if (!data) {
		err = -ENOMEM;
		goto out;
	}
	if (fread(data, 1, size, f) != size) {
		err = -EIO;
		goto out;
	}
	LLVMFuzzerTestOneInput(data, size);
out:
	free(data);
	fclose(f);
	return err;
}

static int replay_folder(const char *path, int *count)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (d = readdir(dir))) {
		char *file = NULL;

		if (d->d_name[0] == '.')
			continue;
		if (asprintf(&file, "%s/%s", path, d->d_name) < 0) {
			err = -ENOMEM;
			break;
		}
		err = replay_file(file);
		if (err)
			fprintf(stderr, "%s: %s\n", file, strerror(-err));
		else
			(*count)++;
		free(file);
	}
	closedir(dir);
	return err;
}

int main(int argc, char **argv)
{
	int count = 0;

	for (int i = 1; i < argc; i++) {
		int err = replay_folder(argv[i], &count);

		if (err == -ENOTDIR) {
			err = replay_file(argv[i]);
			count += !err;
		}
		if (err) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-err));
			return 1;
		}
	}
	if (!count) {
		fprintf(stderr, "no inputs\n");
		return 1;
	}
	printf("# %d inputs\n", count);
	return 0;
}
