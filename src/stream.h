// SPDX-License-Identifier: GPL-2.0-only
/* The end of a stream that was written to. */
#ifndef KVMTOP_STREAM_H
#define KVMTOP_STREAM_H

#include <errno.h>
#include <stdio.h>

/*
 * Closes f: 0 where all that was written since errno was set to 0 has reached the file, else
 * -errno. fclose() alone tells nothing of a write that failed before.
 */
static inline int stream_close(FILE *f)
{
	int rc = 0;

	if (fflush(f) || ferror(f))
		rc = errno ? -errno : -EIO;
	if (fclose(f) && !rc)
		rc = -errno;
	return rc;
}

#endif
