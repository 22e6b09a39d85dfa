// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many intervals as one (store_sum.h): a group is put together when it is full, and its sum is the
 * first of the next group.
 */
#include "store_sum.h"

#include <errno.h>
#include <stdlib.h>

#include "store_code.h"
#include "store_merge.h"
#include "store_priv.h"

#define GROUP 8 /* on a host of 1,000 vCPUs an interval takes some MB */

struct store_sum {
	struct snapshot *part[GROUP];
	size_t n;
	int64_t session;
};

struct store_sum *store_sum_new(void)
{
	return calloc(1, sizeof(struct store_sum));
}

static void forget(struct store_sum *sum)
{
	for (size_t i = 0; i < sum->n; i++)
		snapshot_unref(sum->part[i]);
	sum->n = 0;
}

void store_sum_free(struct store_sum *sum)
{
	if (!sum)
		return;
	forget(sum);
	free(sum);
}

static uint32_t id_of(void *ctx, const char *text)
{
	return store_dict_id(ctx, text);
}

static const char *text_of(void *ctx, uint32_t id)
{
	return store_dict_text(ctx, id);
}

/* A merged interval points into its parts; this one stands alone. */
static int copy_of(const struct snapshot *s, struct snapshot **out)
{
	struct store_dict dict = {0};
	const struct store_texts texts = {.ctx = &dict, .id = id_of, .text = text_of};
	struct store_put bytes = {0};
	int rc = store_encode(s, &texts, &bytes);

	if (!rc)
		rc = store_decode(bytes.data, bytes.n, &texts, out);
	store_put_free(&bytes);
	store_dict_clear(&dict);
	return rc;
}

static int put_together(struct store_sum *sum)
{
	struct snapshot *all, *alone;
	int rc = store_merge(sum->part, sum->n, &all);

	if (rc)
		return rc;
	rc = copy_of(all, &alone);
	snapshot_unref(all);
	if (rc)
		return rc;
	forget(sum);
	sum->part[sum->n++] = alone;
	return 0;
}

int store_sum_add(struct store_sum *sum, struct snapshot *s, int64_t session)
{
	int rc = 0;

	if (session != sum->session)
		forget(sum);
	sum->session = session;
	if (sum->n == GROUP)
		rc = put_together(sum);
	if (!rc)
		sum->part[sum->n++] = snapshot_ref(s);
	return rc;
}

int store_sum_take(struct store_sum *sum, struct snapshot **out)
{
	int rc = sum->n ? put_together(sum) : -ENOENT;

	if (!rc)
		*out = snapshot_ref(sum->part[0]);
	return rc;
}
