// SPDX-License-Identifier: GPL-2.0-only
/* Words replaced by others (anonymize.h). */
#include "anonymize.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_facts.h"
#include "snapshot.h"
#include "store_fields.h"
#include "store_priv.h"
#include "stream.h"
#include "text.h"

/* Words from this length on are replaced within others too ("qemu-web01-io"), shorter ones alone.
 */
#define INSIDE 5
#define COMM_BYTES 16 /* the kernel cuts names of tasks */

enum word_kind { WORD_VM, WORD_UUID, WORD_HOST, WORD_BOOT, WORD_KINDS };

struct word {
	char *from;
	char to[24];
	size_t n; /* of from */
};

struct anon {
	struct word *word; /* longest first: "web01-old" before "web01" */
	size_t n;
	unsigned count[WORD_KINDS];
	struct store_dict seen; /* what was learnt already */
	/* Most texts are the same from interval to interval: what became of each is kept. */
	struct store_dict texts;
	char **result; /* by the number in `texts`; NULL: not known yet */
	size_t nresult;
};

struct anon *anon_new(void)
{
	return calloc(1, sizeof(struct anon));
}

void anon_free(struct anon *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n; i++)
		free(a->word[i].from);
	free(a->word);
	for (size_t i = 0; i < a->nresult; i++)
		free(a->result[i]);
	free(a->result);
	store_dict_clear(&a->seen);
	store_dict_clear(&a->texts);
	free(a);
}

static const struct word *find(const struct anon *a, const char *from)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->word[i].from, from) == 0)
			return &a->word[i];
	return NULL;
}

static int add_word(struct anon *a, const char *from, const char *to)
{
	struct word *more, one = {.n = strlen(from)};
	size_t at = 0;

	if (!one.n || find(a, from))
		return 0;
	snprintf(one.to, sizeof(one.to), "%s", to);
	one.from = strdup(from);
	more = one.from ? reallocarray(a->word, a->n + 1, sizeof(*more)) : NULL;
	if (!more) {
		free(one.from);
		return -ENOMEM;
	}
	a->word = more;
	while (at < a->n && more[at].n >= one.n)
		at++;
	memmove(&more[at + 1], &more[at], (a->n - at) * sizeof(*more));
	more[at] = one;
	a->n++;
	return 0;
}

typedef size_t (*escaper)(char *, size_t, const char *);

static int add_escaped(struct anon *a, escaper escape, const char *from, const char *to)
{
	size_t size = escape(NULL, 0, from) + 1;
	char *escaped = malloc(size);
	int rc = -ENOMEM;

	if (escaped) {
		escape(escaped, size, from);
		rc = add_word(a, escaped, to);
	}
	free(escaped);
	return rc;
}

/*
 * A word, also as it looks where it was escaped for people or for a column, in a command that they
 * are shown, and as the name of a folder.
 */
static int learn(struct anon *a, enum word_kind kind, const char *from)
{
	static const char *const names[] = {"vm", "uuid", "host", "boot"};
	const escaper escapes[] = {text_escape, text_escape_word, text_shell_word, text_path_part};
	uint32_t before = a->seen.n, id;
	char to[24], comm[COMM_BYTES];
	int rc;

	if (!from || !*from)
		return 0;
	id = store_dict_id(&a->seen, from);
	if (!id)
		return -ENOMEM;
	if (id < before || find(a, from))
		return 0;
	snprintf(to, sizeof(to), "%s-%u", names[kind], ++a->count[kind]);
	rc = add_word(a, from, to);
	for (size_t i = 0; i < sizeof(escapes) / sizeof(escapes[0]) && !rc; i++)
		rc = add_escaped(a, escapes[i], from, to);
	/* As the name of a program that is called like it. */
	snprintf(comm, sizeof(comm), "%s", from);
	if (!rc && strlen(from) >= sizeof(comm))
		rc = add_word(a, comm, to);
	return rc;
}

static int learn_host(struct anon *a, const char *node)
{
	char shorter[256];
	int rc = learn(a, WORD_HOST, node);

	/* The host's name without its domain is its name too. */
	if (rc || !node || !strchr(node, '.'))
		return rc;
	snprintf(shorter, sizeof(shorter), "%.*s", (int)strcspn(node, "."), node);
	return add_word(a, shorter, find(a, node)->to);
}

int anon_learn(struct anon *a, const struct snapshot *s)
{
	int rc = learn_host(a, s->host.node);

	if (!rc)
		rc = learn(a, WORD_BOOT, s->host.boot_id);
	for (size_t i = 0; i < s->nvms && !rc; i++) {
		rc = learn(a, WORD_VM, s->vms[i].name);
		if (!rc)
			rc = learn(a, WORD_UUID, s->vms[i].uuid);
		if (!rc)
			rc = learn(a, WORD_VM, s->vms[i].title);
	}
	/* Who had the CPU may be a VM that is gone. */
	for (size_t i = 0; i < s->nwaited && !rc; i++)
		if (s->waited[i].by_vm)
			rc = learn(a, WORD_VM, s->waited[i].name);
	return rc;
}

int anon_learn_vm(struct anon *a, const char *text)
{
	static const size_t dashes[] = {8, 13, 18, 23};
	bool uuid = strlen(text) == 36;

	for (size_t i = 0; i < 4 && uuid; i++)
		uuid = text[dashes[i]] == '-';
	/* Else an id is a process and its start, which names nobody. */
	if (!uuid && strchr(text, '-') && text[strspn(text, "0123456789-")] == '\0')
		return 0;
	return learn(a, uuid ? WORD_UUID : WORD_VM, text);
}

int anon_learn_host(struct anon *a, const struct host_facts *f)
{
	int rc = learn_host(a, host_facts_get(f, "node"));

	return rc ? rc : learn(a, WORD_BOOT, host_facts_get(f, "boot_id"));
}

/* ---- texts ---- */

static bool is_inside(char c)
{
	return isalnum((unsigned char)c) || c == '_' || (unsigned char)c >= 0x80;
}

/* The word that stands at p, text being its beginning. */
static const struct word *word_at(const struct anon *a, const char *text, const char *p)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct word *w = &a->word[i];

		if (*p != w->from[0] || strncmp(p, w->from, w->n) != 0)
			continue;
		if (w->n >= INSIDE)
			return w;
		if ((p == text || !is_inside(p[-1])) && !is_inside(p[w->n]))
			return w;
	}
	return NULL;
}

/*
 * The length of kvmtop's own path at p, which commands that it shows have, and which may name its
 * user's folder; 0: none.
 */
static size_t own_path_at(const char *text, const char *p)
{
	static const char name[] = "/kvmtop";
	size_t quote = *p == '\'' ? 1 : 0, n = quote + strcspn(p + quote, quote ? "'" : " \t\n'\"");

	if (p[quote] != '/' || (p != text && !strchr(" \t\n(", p[-1])))
		return 0;
	if (n < quote + sizeof(name) - 1 ||
	    strncmp(p + n - sizeof(name) + 1, name, sizeof(name) - 1) != 0)
		return 0;
	return p[n] == '\'' ? n + quote : n;
}

/* For free(); NULL: no memory. */
static char *replaced(const struct anon *a, const char *text)
{
	char *buf = NULL;
	size_t size;
	FILE *f = open_memstream(&buf, &size);

	if (!f)
		return NULL;
	for (const char *p = text; *p;) {
		size_t own = own_path_at(text, p);
		const struct word *w = own ? NULL : word_at(a, text, p);

		if (own)
			fputs("kvmtop", f);
		else if (w)
			fputs(w->to, f);
		else
			fputc(*p, f);
		p += own ? own : w ? w->n : 1;
	}
	if (stream_close(f)) {
		free(buf);
		return NULL;
	}
	return buf;
}

char *anon_text(struct anon *a, const char *text)
{
	return replaced(a, text);
}

/* The same out of what is kept, which stays the anonymizer's. NULL: no memory. */
static const char *replaced_before(struct anon *a, const char *text)
{
	uint32_t id = store_dict_id(&a->texts, text);
	size_t n = a->nresult ? a->nresult : 1024;
	char **more;

	if (!id)
		return NULL;
	while (n <= id)
		n *= 2;
	if (n > a->nresult) {
		more = reallocarray(a->result, n, sizeof(*more));
		if (!more)
			return NULL;
		memset(more + a->nresult, 0, (n - a->nresult) * sizeof(*more));
		a->result = more;
		a->nresult = n;
	}
	if (!a->result[id])
		a->result[id] = replaced(a, text);
	return a->result[id];
}

/* ---- snapshots ---- */

/* A thread's name as VMMs and kernels give them; any other may have a VM's in it, and cut. */
static const char *plain_comm(const char *comm)
{
	static const char *const known[] = {"CPU ",	   "IO ",	   "kvm-",   "vhost-",
					    "worker",	   "fc_vcpu",	   "vcpu",   "qemu-system-",
					    "firecracker", "cloud-hyperv", "crosvm", "SPICE ",
					    "call_rcu",	   "vnc_worker"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strncmp(comm, known[i], strlen(known[i])) == 0)
			return comm;
	return *comm ? "thread" : "";
}

static void clear_vms(struct snapshot *s)
{
	struct snap_vm *vm = (struct snap_vm *)s->vms;
	struct snap_vcpu *v = (struct snap_vcpu *)s->vcpus;
	struct snap_thread *t = (struct snap_thread *)s->threads;
	struct snap_cpu *c = (struct snap_cpu *)s->cpus;

	for (size_t i = 0; i < s->nvms; i++)
		vm[i].title = vm[i].cmdline = vm[i].cgroup = vm[i].quota_file = "";
	for (size_t i = 0; i < s->nvcpus; i++)
		v[i].comm = plain_comm(v[i].comm);
	for (size_t i = 0; i < s->nthreads; i++)
		t[i].comm = plain_comm(t[i].comm);
	/* Names of VMs that are cut at some place. */
	for (size_t i = 0; i < s->ncpus; i++)
		c[i].vcpus = "";
}

/* The texts of a table, wherever they are in its rows. */
static int replace_table(struct anon *a, struct snapshot *s, const struct store_table *t)
{
	struct store_leaf leaf[STORE_LEAVES];
	size_t n, nleaf = store_leaves(t, leaf);
	char *rows = (char *)store_rows(t, s, &n);

	for (size_t l = 0; l < nleaf; l++) {
		if (leaf[l].f->type != STORE_TEXT && leaf[l].f->type != STORE_LINE)
			continue;
		for (size_t i = 0; i < n; i++) {
			char *at = rows + i * t->row_size + leaf[l].at;
			const char *text, *other;

			memcpy(&text, at, sizeof(text));
			if (!text || !*text)
				continue;
			other = replaced_before(a, text);
			if (!other)
				return -ENOMEM;
			if (strcmp(text, other) == 0)
				continue;
			other = snapshot_str(s, other);
			memcpy(at, &other, sizeof(other));
		}
	}
	return 0;
}

int anon_snapshot(struct anon *a, struct snapshot *s)
{
	int rc = 0;

	clear_vms(s);
	for (size_t i = 0; i < store_ntables && !rc; i++)
		rc = replace_table(a, s, &store_tables[i]);
	return rc;
}

/* ---- facts ---- */

/* Of the kernel's command line what bears upon guests' speed and names nobody. */
static const char *const kept[] = {
	"mitigations=",
	"isolcpus=",
	"nohz_full=",
	"rcu_nocbs=",
	"nosmt",
	"maxcpus=",
	"nr_cpus=",
	"hugepages=",
	"hugepagesz=",
	"default_hugepagesz=",
	"kvm.",
	"kvm_intel.",
	"kvm_amd.",
	"kvm-intel.",
	"kvm-amd.",
	"intel_iommu=",
	"amd_iommu=",
	"iommu=",
	"intel_idle.",
	"processor.",
	"idle=",
	"tsc=",
	"clocksource=",
	"transparent_hugepage=",
	"intel_pstate=",
	"amd_pstate=",
	"preempt=",
	"spectre_v2=",
	"spec_store_bypass_disable=",
	"l1tf=",
	"mds=",
	"pti=",
	"nopti",
	"retbleed=",
	"cpuidle.",
};

static bool is_kept(const char *word)
{
	if (word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
			      "_.,=:-")])
		return false;
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (strncmp(word, kept[i], strlen(kept[i])) == 0)
			return true;
	return false;
}

static int cut_cmdline(struct host_facts *f)
{
	const char *cmdline = host_facts_get(f, "cmdline");
	char *copy, *rest, *word, *less;
	size_t at = 0, size;
	int rc;

	if (!cmdline)
		return 0;
	size = strlen(cmdline) + 8;
	copy = rest = strdup(cmdline);
	less = malloc(size);
	while (copy && less && (word = strsep(&rest, " ")) != NULL)
		if (is_kept(word))
			at += (size_t)snprintf(less + at, size - at, "%s%s", at ? " " : "", word);
	if (less)
		snprintf(less + at, size - at, "%s...", at ? " " : "");
	rc = copy && less ? host_facts_add(f, "cmdline", less) : -ENOMEM;
	free(copy);
	free(less);
	return rc;
}

int anon_facts(struct anon *a, struct host_facts *f)
{
	int rc = cut_cmdline(f);

	for (size_t i = 0; i < f->n && !rc; i++) {
		char *other = anon_text(a, f->fact[i].value);

		if (!other)
			return -ENOMEM;
		free(f->fact[i].value);
		f->fact[i].value = other;
	}
	return rc;
}
