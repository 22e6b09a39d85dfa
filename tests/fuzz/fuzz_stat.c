// SPDX-License-Identifier: GPL-2.0-only
/* /proc/<pid>/stat of any bytes: the name is terminated, the CPU is none or a sane one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "procfs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct proc_stat st;
	char *in = malloc(len ? len : 1); /* exactly as large: a read beyond it is seen */

	if (!in)
		return 0;
	memcpy(in, data, len);
	if (!procfs_parse_stat(in, len, &st)) {
		if (strnlen(st.comm, sizeof(st.comm)) == sizeof(st.comm) || st.nfields < 3)
			abort();
		if (st.cpu < -1 || st.cpu > 65535 || st.pid < 0 || st.num_threads < 0)
			abort();
		if (st.nfields < PROC_STAT_GTIME && st.gtime)
			abort();
	}
	free(in);
	return 0;
}
