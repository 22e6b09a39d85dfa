// SPDX-License-Identifier: GPL-2.0-only
/* ELF notes and VMCOREINFO of any bytes: a build-id is none or fits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "notes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *in = malloc(len ? len : 1); /* exactly as large: a read beyond it is seen */
	struct vmcoreinfo info;
	struct build_id id;
	char text[20];
	int rc;

	if (!in)
		return 0;
	memcpy(in, data, len);
	rc = notes_build_id(in, len, &id);
	if ((rc == 0) != (id.len > 0) || id.len > BUILD_ID_MAX)
		abort();
	build_id_text(&id, text, sizeof(text));
	rc = vmcoreinfo_parse(in, len, &info);
	if (info.id.len > BUILD_ID_MAX || (rc && (info.has_offset || info.id.len)))
		abort();
	free(in);
	return 0;
}
