// SPDX-License-Identifier: GPL-2.0-only
/* Writes of TSC offsets, read from an instance's trace_pipe (tsc_writes.h). */
#include "tsc_writes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "collector.h"
#include "inventory.h"
#include "kvm_access.h"
#include "trace_instance.h"
#include "tracetext.h"
#include "tsc.h"

#define LINE_MOST 1024
#define READS 64 /* a tick; what is left waits in the kernel */
#define WAITING 1024 /* writes of VMs that are not known yet … */
#define WAIT_NS (5 * NS_PER_S) /* … and how long they are kept for them */

struct waiting {
	struct tsc_epoch e;
	int64_t since;
};

struct tsc_writes {
	const struct collector_env *env;
	struct trace_instance instance;
	int pipe;
	char line[LINE_MOST]; /* what is there of the last one */
	size_t len;
	bool cut; /* it is longer: none of ours */
	struct waiting waiting[WAITING];
	size_t n;
};

/* Whose thread wrote: the VMM's while it makes the VM, the vCPU's later. */
static struct inv_vm *vm_of(const struct tsc_writes *w, const struct tsc_epoch *e)
{
	const struct inv_thread *t = inventory_thread(w->env->inv, e->tid);
	struct inv_vm *vm = t ? t->vm : NULL;

	return vm && !(vm->flags & INV_PROVISIONAL) ? vm : NULL;
}

static bool hand_over(struct tsc_writes *w, const struct tsc_epoch *e)
{
	struct inv_vm *vm = vm_of(w, e);
	const struct tsc_write one = {
		.vm = vm, .kvm_id = (int)e->vcpu, .at = e->at, .prev = e->prev, .next = e->next};

	if (vm)
		w->env->sink->tsc_write(w->env->sink->ctx, &one);
	return vm;
}

static void keep(struct tsc_writes *w, const struct tsc_epoch *e, int64_t now)
{
	if (w->n < WAITING)
		w->waiting[w->n++] = (struct waiting){*e, now};
}

/* In their order: the later ones of a VM wait as the earlier ones do. */
static void try_waiting(struct tsc_writes *w, int64_t now)
{
	size_t left = 0;

	for (size_t i = 0; i < w->n; i++)
		if (!hand_over(w, &w->waiting[i].e) && now - w->waiting[i].since < WAIT_NS)
			w->waiting[left++] = w->waiting[i];
	w->n = left;
}

static void take_line(struct tsc_writes *w, int64_t now)
{
	struct tracetext_event ev = {0};
	struct tsc_epoch e = {0};
	size_t at;

	if (w->cut || !tracetext_line(w->line, w->len, 0, &ev))
		return;
	at = ev.name + ev.name_len + 1;
	if (at > w->len || !tsc_epoch_parse(w->line + at, w->len - at, &e))
		return;
	e.at = ev.ts;
	e.tid = ev.pid;
	if (!hand_over(w, &e))
		keep(w, &e, now);
}

static void take(struct tsc_writes *w, const char *text, size_t n, int64_t now)
{
	for (size_t i = 0; i < n; i++) {
		if (text[i] == '\n') {
			take_line(w, now);
			w->len = 0;
			w->cut = false;
		} else if (w->len < sizeof(w->line)) {
			w->line[w->len++] = text[i];
		} else {
			w->cut = true;
		}
	}
}

void tsc_writes_read(struct tsc_writes *w, int64_t now)
{
	char buf[4096];
	ssize_t n;

	if (!w)
		return;
	try_waiting(w, now);
	for (int i = 0; i < READS; i++) {
		n = read(w->pipe, buf, sizeof(buf));
		if (n <= 0)
			break;
		take(w, buf, (size_t)n, now);
	}
}

static int open_pipe(struct tsc_writes *w)
{
	int rc;

	trace_instance_set(&w->instance, "buffer_size_kb", "256"); /* else what it has */
	rc = trace_instance_event(&w->instance, "kvm/kvm_write_tsc_offset");
	if (rc)
		return rc;
	w->pipe = openat(w->instance.fd, "trace_pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (w->pipe < 0)
		return -errno;
	return trace_instance_set(&w->instance, "tracing_on", "1");
}

int tsc_writes_open(const struct collector_env *env, struct tsc_writes **out, char *err,
		    size_t size)
{
	struct tsc_writes *w = calloc(1, sizeof(*w));
	char dir[100];
	const char *tracefs;
	int rc;

	if (!w)
		return -ENOMEM;
	*w = (struct tsc_writes){.env = env, .pipe = -1, .instance = {.instances = -1, .fd = -1}};
	tracefs = kvm_tracefs(env->root, &rc);
	snprintf(dir, sizeof(dir), "/%s", tracefs ? tracefs : "");
	if (tracefs) {
		rc = trace_instance_make(dir, "record", &w->instance, err, size);
		if (!rc)
			rc = open_pipe(w);
	}
	if (rc) {
		snprintf(err, size,
			 "read now and then, each write with its moment is not: an ftrace "
			 "instance: %s",
			 strerror(-rc));
		tsc_writes_close(w);
		return rc;
	}
	*out = w;
	return 0;
}

void tsc_writes_close(struct tsc_writes *w)
{
	if (!w)
		return;
	if (w->pipe >= 0)
		close(w->pipe);
	trace_instance_remove(&w->instance);
	free(w);
}
