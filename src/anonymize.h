// SPDX-License-Identifier: GPL-2.0-only
/*
 * Words that tell whose host it is, replaced by others: names and UUIDs of VMs, names of hosts,
 * boots; the same word by the same everywhere. Command lines, titles and cgroups go.
 *
 * First all intervals are shown to anon_learn(), then what is given away is replaced.
 */
#ifndef KVMTOP_ANONYMIZE_H
#define KVMTOP_ANONYMIZE_H

#include <stddef.h>

struct anon;
struct host_facts;
struct snapshot;

struct anon *anon_new(void); /* NULL: no memory */
void anon_free(struct anon *a); /* NULL is fine */
int anon_learn(struct anon *a, const struct snapshot *s); /* 0 or -ENOMEM */
/* A VM of which only this is known: its name, or its UUID or vm_id. 0 or -ENOMEM */
int anon_learn_vm(struct anon *a, const char *text);
int anon_learn_host(struct anon *a, const struct host_facts *f); /* 0 or -ENOMEM */
/* Replaces the texts of a snapshot that nobody else reads. 0 or -ENOMEM: it may not be used then.
 */
int anon_snapshot(struct anon *a, struct snapshot *s);
int anon_facts(struct anon *a, struct host_facts *f); /* 0 or -ENOMEM, as above */
/* A text with all known words replaced, for free(). NULL: no memory. */
char *anon_text(struct anon *a, const char *text);

#endif
