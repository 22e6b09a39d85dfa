// SPDX-License-Identifier: GPL-2.0-only
/* The recording's part of a bundle (bundle.h): a copy of the range, and what is to be read of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "anonymize.h"
#include "batch_table.h"
#include "bundle.h"
#include "clock.h"
#include "filter.h"
#include "format.h"
#include "host_facts.h"
#include "out.h"
#include "store_span.h"
#include "store_sum.h"
#include "store_time.h"
#include "tar.h"
#include "text.h"

/* ---- which ---- */

static int choose_range(struct bundle *b, char *err)
{
	struct store_range held;
	char safe[100];
	int rc = store_range(b->store, &held);

	b->from = INT64_MIN;
	b->to = INT64_MAX;
	if (rc || !b->o->at)
		return rc;
	if (store_time_range(b->o->at, held.newest, &b->from, &b->to))
		return store_span_holds(b->store, &held, b->from,
					store_time_asked_end(b->o->at, b->from, b->to))
			       ? 0
			       : -ENOENT;
	text_escape(safe, sizeof(safe), b->o->at);
	if (b->from > b->to)
		snprintf(err, BUNDLE_ERR, "--at '%s': its end is before its beginning", safe);
	else
		snprintf(err, BUNDLE_ERR,
			 "--at '%s': not a range of time: give 03:00-03:10, 'yesterday 03:12', or "
			 "-2h",
			 safe);
	return -EINVAL;
}

/* The first and the last interval of which a part lies within, and how many there are. */
static int count(struct bundle *b)
{
	struct store_at at = {0};
	int rc;

	while (!(rc = store_next_within(b->store, at.id, b->from, b->to, &at))) {
		if (!b->intervals++)
			b->first = at;
		b->last = at;
	}
	if (rc != -ENOENT)
		return rc;
	return b->intervals ? 0 : -ENOENT;
}

static void drop_recording(struct bundle *b, const char *why)
{
	store_close(b->store);
	b->store = NULL;
	snprintf(b->no_recording, sizeof(b->no_recording), "%s", why);
}

static void say_why(const struct bundle *b, int rc, char *err)
{
	char safe[200], first[40], last[40];
	struct store_range held;

	text_escape(safe, sizeof(safe), b->recording);
	if (rc != -ENOENT) {
		snprintf(err, BUNDLE_ERR, "%s: %s", safe, store_strerror(rc));
	} else if (!b->o->at || store_range(b->store, &held)) {
		snprintf(err, BUNDLE_ERR, "%s: there is nothing in it yet", safe);
	} else {
		store_time_text(first, sizeof(first), held.first);
		store_time_text(last, sizeof(last), held.last);
		snprintf(err, BUNDLE_ERR,
			 "%s: no interval lies in that range: the recording holds %s to %s", safe,
			 first, last);
	}
}

/* What was asked for must be there; what would be nice to have need not. */
static int do_without(struct bundle *b, int rc, char *err)
{
	if (!rc || b->o->nwords || b->o->at)
		return rc;
	drop_recording(b, err);
	err[0] = '\0';
	return 0;
}

int bundle_open_recording(struct bundle *b, char *err)
{
	int rc;

	b->recording = b->o->nwords ? b->o->words[0] : STORE_DEFAULT;
	rc = store_open(b->recording, &b->store, err, BUNDLE_ERR);
	if (!rc) {
		rc = choose_range(b, err);
		if (!rc)
			rc = count(b);
		if (rc && !err[0])
			say_why(b, rc, err);
	}
	return do_without(b, rc, err);
}

/* ---- all intervals, one after the other ---- */

typedef int (*visitor)(struct bundle *b, const struct store_at *at, struct snapshot *s, void *ctx);

static int walk(struct bundle *b, visitor look, void *ctx)
{
	struct store_at at = b->first;
	struct snapshot *s;
	int rc;

	for (;;) {
		if (bundle_was_ended(b))
			return -EINTR;
		rc = store_read(b->store, at.id, &s);
		if (!rc) {
			rc = look(b, &at, s, ctx);
			snapshot_unref(s);
		} else if (rc == -EBADMSG || rc == -ENOENT) {
			b->damaged++;
			rc = 0;
		}
		if (rc || at.id >= b->last.id)
			return rc;
		rc = store_next_within(b->store, at.id, b->from, b->to, &at);
		if (rc || at.id > b->last.id)
			return rc == -ENOENT ? 0 : rc;
	}
}

/* -EBADMSG: not one of them could be read. */
static int visit(struct bundle *b, visitor look, void *ctx)
{
	int rc;

	b->damaged = 0;
	rc = walk(b, look, ctx);
	return !rc && b->damaged >= b->intervals ? -EBADMSG : rc;
}

static int learn(struct bundle *b, const struct store_at *at, struct snapshot *s, void *ctx)
{
	(void)at;
	(void)ctx;
	return anon_learn(b->anon, s);
}

int bundle_learn(struct bundle *b, char *err)
{
	struct host_facts f;
	int rc = host_facts_read(b->root, &f);

	if (!rc) {
		rc = anon_learn_host(b->anon, &f);
		host_facts_free(&f);
	}
	if (!rc && b->store) {
		rc = visit(b, learn, NULL);
		if (rc == -EBADMSG) {
			say_why(b, rc, err);
			rc = do_without(b, rc, err);
		}
	}
	return rc;
}

/* ---- findings ---- */

static bool is_same(const struct snapshot *s, const struct snap_finding *a,
		    const struct snapshot *t, const struct snap_finding *b)
{
	const char *x = a->vm >= 0 ? s->vms[a->vm].vm_id : "";
	const char *y = b->vm >= 0 ? t->vms[b->vm].vm_id : "";

	return strcmp(a->rule, b->rule) == 0 && strcmp(x, y) == 0;
}

/* Those that were not there in the interval before. */
static void put_findings(struct out *out, const struct snapshot *s, const struct snapshot *before)
{
	char time[48];

	format_time(time, sizeof(time), s->wall);
	for (size_t i = 0; i < s->nfindings; i++) {
		const struct snap_finding *f = &s->findings[i];
		bool old = false;

		for (size_t k = 0; before && k < before->nfindings && !old; k++)
			old = is_same(s, f, before, &before->findings[k]);
		if (old)
			continue;
		out_printf(out, "%s  ", time);
		format_escaped(out, text_escape, f->text);
		if (f->next && *f->next) {
			out_text(out, "  (next: ");
			format_escaped(out, text_escape, f->next);
			out_text(out, ")");
		}
		out_text(out, "\n");
	}
}

/* ---- the copy ---- */

struct copying {
	struct store *to;
	struct store_sum *sum;
	struct out *findings;
	struct snapshot *before;
	struct host_facts facts; /* as they are in the copy */
};

static int copy_facts(struct bundle *b, int64_t id, struct copying *c)
{
	struct host_facts now;
	int rc = store_facts(b->store, id, &now);

	if (rc)
		return rc == -ENOENT || rc == -EBADMSG ? 0 : rc;
	if (b->anon)
		rc = anon_facts(b->anon, &now);
	if (!rc && !host_facts_equal(&now, &c->facts))
		rc = store_copy_facts(c->to, &now, id);
	host_facts_free(&c->facts);
	c->facts = now;
	return rc;
}

static int copy_one(struct bundle *b, const struct store_at *at, struct snapshot *s, void *ctx)
{
	struct copying *c = ctx;
	int rc = b->anon ? anon_snapshot(b->anon, s) : 0;

	if (!rc)
		rc = copy_facts(b, at->id, c);
	if (!rc)
		rc = store_copy(b->store, at, s, c->to);
	if (!rc)
		rc = store_sum_add(c->sum, s, at->session);
	if (rc == -EBADMSG) {
		b->damaged++;
		return 0;
	}
	if (rc)
		return rc;
	put_findings(c->findings, s, c->before);
	snapshot_unref(c->before);
	c->before = snapshot_ref(s);
	return 0;
}

/* Also of VMs that are in no interval of the range. */
static char *other_name(void *ctx, const char *text)
{
	struct bundle *b = ctx;

	if (!b->anon)
		return strdup(text);
	return anon_learn_vm(b->anon, text) ? NULL : anon_text(b->anon, text);
}

static int copy_all(struct bundle *b, struct copying *c, const char *path, int *fd, char *err)
{
	int rc = store_copy_new(path, &c->to, err, BUNDLE_ERR);

	if (rc)
		return rc;
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	rc = *fd < 0 ? -errno : 0;
	if (!rc)
		rc = store_copy_tsc(b->store, b->last.id, other_name, b, c->to);
	if (!rc)
		rc = visit(b, copy_one, c);
	if (!rc)
		rc = store_copy_end(c->to);
	store_close(c->to);
	return rc;
}

/* Beside the archive, where there is room for it anyway; it has no name any more when it is whole.
 */
static int make_copy(struct bundle *b, struct copying *c, int *fd, char *err)
{
	char folder[sizeof(b->path) + 32], path[sizeof(folder) + 16];
	const char *slash = strrchr(b->path, '/');
	int rc;

	snprintf(folder, sizeof(folder), "%.*s.kvmtop-bundle-XXXXXX",
		 slash ? (int)(slash - b->path + 1) : 0, b->path);
	if (!mkdtemp(folder))
		return -errno;
	snprintf(path, sizeof(path), "%s/r.db", folder);
	rc = copy_all(b, c, path, fd, err);
	unlink(path);
	rmdir(folder);
	return rc;
}

/* ---- tables ---- */

static int put_table(struct bundle *b, const struct batch_table *t, const struct snapshot *s,
		     struct out *out)
{
	struct filter *all = filter_new();
	struct format_job job = {.query = {.table = t, .filter = all}};
	struct format_state *state = NULL;
	char err[200];
	int rc = all ? format_text.open(&job, &state, err, sizeof(err)) : -ENOMEM;

	(void)b;
	if (!rc)
		rc = format_text.record(state, out, s);
	if (state)
		format_text.close(state);
	filter_free(all);
	return rc;
}

static int add_table(struct bundle *b, const struct batch_table *t, const struct snapshot *s)
{
	int fd = memfd_create("table", MFD_CLOEXEC), rc;
	struct out *out = fd < 0 ? NULL : out_new(fd, -1, 0);
	char name[160], length[40];

	if (!out) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	out_printf(out, "%s: the whole range as one interval of %s\n", t->what,
		   store_duration_text(s->dt, length, sizeof(length)));
	rc = put_table(b, t, s, out);
	if (!rc)
		rc = out_flush(out);
	out_free(out);
	snprintf(name, sizeof(name), "%s/tables/%s.txt", b->folder, t->name);
	if (!rc)
		rc = tar_add_fd(b->tar, name, fd);
	close(fd);
	return rc;
}

static int add_tables(struct bundle *b, struct store_sum *sum)
{
	struct snapshot *s;
	int rc = store_sum_take(sum, &s);

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	for (size_t i = 0; i < batch_ntables && !rc; i++)
		/* vCPUs' symbols are not recorded, and vCPUs with their VMs are in others. */
		if (strcmp(batch_tables[i].name, "vcpu-symbol") != 0 &&
		    strcmp(batch_tables[i].name, "cpu") != 0)
			rc = add_table(b, &batch_tables[i], s);
	snapshot_unref(s);
	return rc;
}

static int add_file(struct bundle *b, const char *file, int fd)
{
	char name[160];

	snprintf(name, sizeof(name), "%s/%s", b->folder, file);
	return tar_add_fd(b->tar, name, fd);
}

static int write_all(struct bundle *b, struct copying *c, int findings, char *err)
{
	int copy = -1, rc;

	out_text(c->findings, "what kvmtop found, and when it began:\n");
	rc = make_copy(b, c, &copy, err);
	if (!rc)
		rc = out_flush(c->findings);
	if (!rc)
		rc = add_file(b, "findings.txt", findings);
	if (!rc)
		rc = add_tables(b, c->sum);
	if (!rc)
		rc = add_file(b, "recording.db", copy);
	if (copy >= 0)
		close(copy);
	return rc;
}

int bundle_write_recording(struct bundle *b, char *err)
{
	int fd = memfd_create("findings", MFD_CLOEXEC), rc = -ENOMEM;
	struct copying c = {.sum = store_sum_new(), .findings = out_new(fd, -1, 0)};

	if (fd >= 0 && c.sum && c.findings)
		rc = write_all(b, &c, fd, err);
	if (rc == -EBADMSG && !err[0]) {
		say_why(b, rc, err);
		rc = do_without(b, rc, err);
	}
	snapshot_unref(c.before);
	host_facts_free(&c.facts);
	store_sum_free(c.sum);
	out_free(c.findings);
	if (fd >= 0)
		close(fd);
	return rc;
}
