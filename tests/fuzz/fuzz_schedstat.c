// SPDX-License-Identifier: GPL-2.0-only
/* /proc/<pid>/schedstat of any bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct proc_schedstat s;
	char *in = malloc(len ? len : 1);

	if (!in)
		return 0;
	memcpy(in, data, len);
	if (!procfs_parse_schedstat(in, len, &s) && len < 5)
		abort(); /* three numbers take five bytes */
	free(in);
	return 0;
}
