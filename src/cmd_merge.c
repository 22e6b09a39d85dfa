// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmtop merge: the ftrace texts of a host and of guests in one order, by the host's TSC (merge.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "merge.h"
#include "options.h"
#include "out.h"
#include "store.h"
#include "text.h"

/* "NAME=FILE" or "FILE"; a file whose path has a "=" behind a "/" (or that is there) is a file. */
static void name_guest(struct merge_input *g, const char *arg, char *name)
{
	const char *eq = strchr(arg, '='), *slash = strchr(arg, '/');

	*g = (struct merge_input){.name = "g", .path = arg, .fd = -1};
	if (!eq || eq == arg || (slash && slash < eq) || access(arg, F_OK) == 0)
		return;
	memcpy(name, arg, (size_t)(eq - arg));
	name[eq - arg] = '\0';
	g->name = name;
	g->named = true;
	g->path = eq + 1;
}

static int add_guest(struct merge *m, const char *arg, char **names)
{
	struct merge_input *more = reallocarray(m->guest, m->nguests + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	m->guest = more;
	name_guest(&more[m->nguests++], arg, *names);
	*names += strlen(arg) + 1;
	return 0;
}

/* What says something of a guest, said of one. */
static int apply(struct merge *m, struct merge_input *g, const struct merge_word *w,
		 struct merge_found *found)
{
	switch (w->what) {
	case 'o':
		return merge_add_offset(m, g, w->arg);
	case 's':
		return merge_add_scaling(m, g, w->arg);
	case 'm':
		return merge_add_map(m, g, w->arg);
	case 'r':
		return merge_add_recording(m, g, w->arg, found);
	default:
		return 0;
	}
}

/* Before the first -G: of all guests; behind one: of that. */
static int apply_all(struct merge *m, const struct merge_words *words, struct merge_found *found)
{
	size_t guest = 0;
	int rc = 0;

	for (size_t i = 0; i < words->n && !rc; i++) {
		const struct merge_word *w = &words->word[i];
		struct merge_input *of;
		size_t n;

		guest += w->what == 'G';
		of = guest ? &m->guest[guest - 1] : m->guest;
		n = guest ? 1 : m->nguests;
		if (w->what == 't') /* read once, for it may be a pipe */
			rc = merge_add_tsc_file(m, of, n, w->arg, found);
		for (size_t k = 0; k < n && !rc; k++)
			rc = apply(m, &of[k], w, found);
	}
	return rc;
}

static int usage(struct merge *m, const char *why)
{
	snprintf(m->why, sizeof(m->why), "%s", why);
	return -EINVAL;
}

static int check_names(struct merge *m, const struct merge_words *words)
{
	size_t standard = strcmp(m->host.path, "-") == 0;

	for (size_t i = 0; i < words->n; i++)
		standard += words->word[i].what == 't' && strcmp(words->word[i].arg, "-") == 0;
	for (size_t i = 0; i < m->nguests; i++) {
		standard += strcmp(m->guest[i].path, "-") == 0;
		for (size_t k = 0; k < i; k++)
			if (strcmp(m->guest[i].name, m->guest[k].name) == 0)
				return usage(m,
					     "merge: two guests of one name: tell them apart with "
					     "-G NAME=FILE");
	}
	if (standard > 1)
		return usage(m, "merge: '-': standard input is one file only");
	return 0;
}

/* Guests and their files; `names` has room for all of their names. */
static int take_words(struct merge *m, const struct merge_words *words, char *names)
{
	int rc = 0;

	for (size_t i = 0; i < words->n && !rc; i++) {
		const struct merge_word *w = &words->word[i];

		if (w->what == 'G')
			rc = add_guest(m, w->arg, &names);
		else if (w->what == 'H' && m->host.path)
			rc = usage(m, "merge: there is one host: give -H once");
		else if (w->what == 'H')
			m->host.path = w->arg;
	}
	if (rc)
		return rc;
	if (!m->host.path || !m->nguests)
		return usage(m, "merge: give the host's trace and a guest's: kvmtop merge -H HOST "
				"-G GUEST [-G NAME=GUEST...]");
	return check_names(m, words);
}

static bool any_named(const struct merge *m)
{
	for (size_t i = 0; i < m->nguests; i++)
		if (m->guest[i].named)
			return true;
	return false;
}

static int open_inputs(struct merge *m, const char *root, struct merge_found *found)
{
	int rc = any_named(m) ? merge_live(m, root) : 0;

	/* The VMs of this host are a help only: without rights the traces must do. */
	if (rc != -ENOMEM)
		rc = merge_input_open(m, &m->host, found);

	for (size_t i = 0; i < m->nguests && !rc; i++)
		rc = merge_input_open(m, &m->guest[i], NULL);
	if (!rc && !found->n)
		rc = merge_default_recording(m, STORE_DEFAULT, found);
	if (!rc)
		rc = merge_chains(m, found);
	return rc ? rc : merge_resolve(m);
}

/* --- what is said beside the lines --- */

static void put_spans(const struct merge_cpu *c, struct out *out)
{
	const char *before = "offset ";

	for (size_t i = 0; i < c->nspans; i++) {
		const struct merge_span *s = &c->span[i];

		if (!i && c->nspans > 1 && !s->offset)
			continue; /* a new vCPU's, before anybody gave it one */
		out_printf(out, "%s%" PRId64, before, (int64_t)s->offset);
		if (i)
			out_printf(out, " from %" PRIu64 " on", s->from);
		before = ", ";
	}
}

static void put_cpu(const struct merge_input *g, unsigned cpu, struct out *out)
{
	const struct merge_cpu *c = &g->cpu[cpu];
	char name[100];

	text_escape(name, sizeof(name), g->name);
	out_printf(out, "# %s [%03u] is vCPU %u: ", name, cpu, merge_vcpu_of(g, cpu));
	if (c->borrowed)
		out_text(out, "its offset is not known, another vCPU's is taken: ");
	put_spans(c, out);
	if (c->scale.ratio)
		out_printf(out, ", scaled by %" PRIu64 " / 2^%u", c->scale.ratio,
			   c->scale.frac_bits);
	out_text(out, "\n");
}

static void put_head(const struct merge *m, struct out *out)
{
	out_text(out, "# kvmtop merge: time stamps are the host's TSC\n");
	for (size_t i = 0; i < m->nguests; i++) {
		if (m->guest[i].by_default)
			out_printf(out, "# the next guest's offsets are those of %s\n",
				   m->guest[i].by_default);
		for (unsigned cpu = 0; cpu < m->guest[i].ncpus; cpu++)
			if (m->guest[i].cpu[cpu].nspans)
				put_cpu(&m->guest[i], cpu, out);
	}
	out_text(out, "#\n");
}

static void warn_of(const struct merge *m, const struct merge_input *in)
{
	char name[100];

	text_escape(name, sizeof(name), in->name);
	if (!in->events)
		fprintf(stderr, "kvmtop: %s: the trace has no events\n", name);
	else if (in->outside == in->events && m->host.events)
		fprintf(stderr,
			"kvmtop: %s: none of its %" PRIu64
			" lines lies within the host's trace: is "
			"the offset right, and were both recorded at the same time?\n",
			name, in->events);
	if (in->unsaid)
		fprintf(stderr, "kvmtop: %s: %" PRIu64 " more places of doubt than were said\n",
			name, in->unsaid);
	if (in->cut)
		fprintf(stderr, "kvmtop: %s: %" PRIu64 " lines were too long and are cut\n", name,
			in->cut);
	if (in == &m->host && in->lost && m->epochs.n)
		fputs("kvmtop: h: the host's trace has lost events: changes of offsets may be "
		      "among "
		      "them\n",
		      stderr);
}

static int run(struct merge *m)
{
	struct out *out = out_new(STDOUT_FILENO, -1, 0);
	int rc;

	if (!out)
		return -ENOMEM;
	m->escape = isatty(STDOUT_FILENO);
	put_head(m, out);
	rc = merge_run(m, out);
	if (!rc || rc == -EPIPE)
		rc = out_flush(out);
	out_free(out);
	if (rc == -EPIPE)
		return 0;
	if (rc && !m->why[0])
		snprintf(m->why, sizeof(m->why), "cannot write what was merged: %s", strerror(-rc));
	if (rc)
		return rc;
	warn_of(m, &m->host);
	for (size_t i = 0; i < m->nguests; i++)
		warn_of(m, &m->guest[i]);
	return 0;
}

int cmd_merge(const struct options *o)
{
	struct merge m = {.host = {.name = "h", .fd = -1}};
	struct merge_found found = {0};
	size_t room = 1;
	int rc, status = STATUS_USAGE;
	char *names;

	for (size_t i = 0; i < o->merge.n; i++)
		room += strlen(o->merge.word[i].arg) + 1;
	names = malloc(room);
	rc = names ? take_words(&m, &o->merge, names) : -ENOMEM;
	if (!rc)
		rc = apply_all(&m, &o->merge, &found);
	if (!rc) {
		status = STATUS_FAILED;
		rc = open_inputs(&m, o->root, &found);
	}
	if (!rc)
		rc = run(&m);
	if (rc)
		fprintf(stderr, "kvmtop: %s\n", m.why[0] ? m.why : strerror(-rc));
	free(found.epoch);
	merge_free(&m);
	free(names);
	return rc ? status : STATUS_OK;
}
