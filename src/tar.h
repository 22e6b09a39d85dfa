// SPDX-License-Identifier: GPL-2.0-only
/* Writing of a .tar.gz (ustar): files only, mode 0600, owned by root. */
#ifndef KVMTOP_TAR_H
#define KVMTOP_TAR_H

#include <stddef.h>
#include <stdint.h>

struct tar;

/* Into fd, which stays the caller's; mtime (s since 1970) is that of all files. NULL: no memory. */
struct tar *tar_new(int fd, int64_t mtime);
void tar_free(struct tar *t); /* writes nothing more; NULL is fine */
/* Names have less than 100 bytes. 0 or -errno; once one failed all fail. */
int tar_add(struct tar *t, const char *name, const void *data, size_t n);
/* All of a regular file, whatever its offset; less than 8 GiB. */
int tar_add_fd(struct tar *t, const char *name, int fd);
int tar_end(struct tar *t); /* the end of the archive: 0 or -errno of any call */

#endif
