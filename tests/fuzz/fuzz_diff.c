// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two intervals of recordings, of any bytes (the first two bytes say where the second begins): what
 * can be read of them is compared, in every format.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "diff.h"
#include "out.h"
#include "snapshot.h"
#include "store_code.h"

#define TIMES 6 /* enough for the noise to be looked for */

static const char *any_text(void *ctx, uint32_t id)
{
	static const char *const texts[] = {"web01", "MSR_WRITE", "\x1b[31m", "\xff\xfe", "other"};

	(void)ctx;
	return texts[id % (sizeof(texts) / sizeof(texts[0]))];
}

static void add(struct diff_side *side, const uint8_t *data, size_t n)
{
	const struct store_texts texts = {.text = any_text};
	struct snapshot *s;

	if (store_decode(data, n, &texts, &s))
		return;
	for (unsigned i = 0; i < TIMES; i++)
		if (diff_add(side, s, i, TIMES))
			break;
	snapshot_unref(s);
}

static void say(const struct diff *d)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct out *o = out_new(fd, -1, 0);

	if (fd < 0 || !o)
		abort();
	diff_text(d, 0, o);
	diff_csv(d, o);
	if (diff_json(d, o) || out_flush(o))
		abort();
	out_free(o);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct diff d = {.side = {{.label = "A", .path = "a"}, {.label = "B", .path = "b"}}};
	char err[600];
	size_t at;

	if (len < 2)
		return 0;
	at = (size_t)data[0] << 8 | data[1];
	data += 2;
	len -= 2;
	if (at > len)
		at = len;
	add(&d.side[0], data, at);
	add(&d.side[1], data + at, len - at);
	if (!diff_match(&d, NULL, 0, err, sizeof(err)) && !diff_compare(&d))
		say(&d);
	diff_free(&d);
	return 0;
}
