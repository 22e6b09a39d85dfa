// SPDX-License-Identifier: GPL-2.0-only
/* What a command printed in a guest, of any bytes: its parts follow one another inside of it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "guest_capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *in = malloc(len ? len : 1); /* exactly as large: a read beyond it is seen */
	struct guest_capture c;
	int rc;

	if (!in)
		return 0;
	memcpy(in, data, len);
	rc = guest_capture_split(in, len, &c);
	if (c.kallsyms != in || c.modules != in + c.kallsyms_len ||
	    c.notes != c.modules + c.modules_len ||
	    c.kallsyms_len + c.modules_len + c.notes_len > len)
		abort();
	if ((!rc && !c.facts.code) || (c.notes_len == 0) != (c.id.len == 0))
		abort();
	free(in);
	return 0;
}
