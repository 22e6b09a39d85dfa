// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of others, whole and in memory: regular ones, bounded, unpacked where gzip or xz packed
 * them. They are copies of a guest's files, or belong to whoever started the VMM: nothing about
 * them is taken for granted.
 */
#ifndef KVMTOP_BYTES_H
#define KVMTOP_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BYTES_TEXT_MAX                                                                             \
	(128u << 20) /* of any text file: kallsyms of the largest kernels is 20 MiB */

struct bytes {
	char *data; /* NULL: none */
	size_t len;
};

void bytes_free(struct bytes *b); /* and sets it to none */
/*
 * All that fd has from its position on, unpacked; at most limit bytes of both. 0; -EFBIG when
 * there is more; -EBADMSG where the packed data are broken or cut off; -errno of read().
 */
int bytes_read(int fd, size_t limit, struct bytes *out);
/* Unpacks gzip or xz data; -ENOENT: it is neither. Else as bytes_read(). */
int bytes_unpack(const void *data, size_t len, size_t limit, struct bytes *out);

/*
 * Opens a file below the folder dir: ".." and symbolic links are refused (-ELOOP, -EXDEV), and
 * everything that is no regular file (-EINVAL). The descriptor, or -errno.
 */
int bytes_open_beneath(int dir, const char *path);
/* Opens a path as a user gave it; regular files only, fifos and devices -EINVAL. */
int bytes_open(const char *path);
/* The file behind a descriptor of O_PATH, which is closed (or is the -errno that is returned). */
int bytes_open_fd(int path_fd);
/* Within a root folder, in which absolute links and ".." stay (a process' own root). */
int bytes_open_in_root(int root, const char *path);

/* What an error of these functions means, for messages; static storage. */
const char *bytes_error(int rc);

/* What a file is recognised by without reading it: the same stamp, the same content. */
struct stamp {
	uint64_t dev, ino, size, mtime_ns, ctime_ns;
};
int stamp_of(int fd, struct stamp *out); /* 0 or -errno */

#endif
