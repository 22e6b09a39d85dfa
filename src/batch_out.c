// SPDX-License-Identifier: GPL-2.0-only
/* Intervals in a format on standard output (batch_out.h). */
#include "batch_out.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "signals.h"
#include "text.h"
#include "when.h"

/* How long a write may be stuck after SIGTERM before the record is given up. */
#define GRACE_MS 2000

static const struct format *format_of(enum output_format f)
{
	static const struct format *const formats[] = {
		[FORMAT_TEXT] = &format_text,
		[FORMAT_CSV] = &format_csv,
		[FORMAT_JSON] = &format_json,
		[FORMAT_PROMETHEUS] = &format_prometheus,
	};

	return formats[f];
}

static int open_format(struct batch_out *b, char *err, size_t size)
{
	const struct options *o = b->o;

	b->format = format_of(o->format);
	b->job = (struct format_job){
		.query = {.table = o->table ? o->table : batch_table_find(b->format->default_table),
			  .filter = o->filter,
			  .when = o->when,
			  .sort = o->sort,
			  .reverse = o->reverse,
			  .total = o->totals,
			  .as_screen = o->format == FORMAT_TEXT},
		.fields = o->fields,
		.whole = !o->table && (o->format == FORMAT_JSON ||
				       (o->format == FORMAT_PROMETHEUS && !o->fields && !o->when)),
	};
	return b->format->open(&b->job, &b->state, err, size);
}

static bool any_vcpu(const struct batch_out *b, const struct snapshot *s, const struct snap_vm *vm)
{
	for (uint32_t i = 0; i < vm->vcpu_n; i++)
		if (filter_vcpu(b->o->filter, &s->vcpus[vm->vcpu_first + i]))
			return true;
	return false;
}

/* A selection that nothing matches looks like a quiet host: say it, once. */
static void check_selection(struct batch_out *b, const struct snapshot *s)
{
	const struct filter *f = b->o->filter;
	size_t vms = 0;

	if (b->said_no_vm || s->host.discovered < s->host.discovering ||
	    !(filter_has_vms(f) || (filter_has_vcpus(f) && s->nvms)))
		return;
	b->said_no_vm = true;
	for (size_t i = 0; i < s->nvms; i++) {
		if (!filter_vm(f, &s->vms[i]))
			continue;
		if (!filter_has_vcpus(f) || any_vcpu(b, s, &s->vms[i]))
			return;
		vms++;
	}
	if (vms)
		fputs("kvmtop: no vCPU here is selected by --vcpu; waiting for one\n", stderr);
	else
		fprintf(stderr,
			"kvmtop: none of the %zu VMs here is selected by -p or -M; waiting for "
			"one\n",
			s->nvms);
}

/* Rows of exits that a KVM never fires: an empty table would look like guests that never exit. */
static void check_exits(struct batch_out *b, const struct snapshot *s)
{
	enum field_table t = b->job.query.table->first;

	if (b->said_no_exit || (t != TABLE_EXIT && t != TABLE_CODE) || b->job.whole ||
	    (b->o->kinds & ~KIND_BIT(KIND_VMEXIT)) || !(s->open_kinds & KIND_BIT(KIND_VMEXIT)) ||
	    s->host.entry_exit || !s->nvcpus)
		return;
	b->said_no_exit = true;
	fputs("kvmtop: no kvm_exit was seen: no guest has run, or this KVM fires none; --event "
	      "userexit has what returns to the VMM\n",
	      stderr);
}

static bool is_called(const struct snap_vm *vm, const char *name)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", (int)vm->pid);
	return strcmp(vm->name, name) == 0 || (vm->uuid && strcmp(vm->uuid, name) == 0) ||
	       strcmp(pid, name) == 0;
}

/* A slip in --guestkallsyms NAME=FILE shows as symbols without names: say it, once. */
static void check_guests(struct batch_out *b, const struct snapshot *s)
{
	const struct guest_files *files = &b->o->guest_files;
	char safe[100];

	if (b->said_no_guest || s->host.discovered < s->host.discovering)
		return;
	b->said_no_guest = true;
	for (size_t i = 0; i < files->n; i++) {
		const char *name = files->option[i].vm;
		bool found = !name;

		for (size_t k = 0; k < s->nvms && !found; k++)
			found = is_called(&s->vms[k], name);
		if (found)
			continue;
		text_escape(safe, sizeof(safe), name);
		fprintf(stderr,
			"kvmtop: no VM here has the name, UUID or pid '%s' that a file of a "
			"guest's kernel is for; waiting for one\n",
			safe);
	}
}

int batch_out_open(struct batch_out *b, const struct options *o, char *err, size_t size)
{
	b->o = o;
	b->sigfd = signals_open(false, NULL);
	if (b->sigfd < 0)
		return b->sigfd;
	b->out = out_new(STDOUT_FILENO, b->sigfd, GRACE_MS);
	return b->out ? open_format(b, err, size) : -ENOMEM;
}

int batch_out_write(struct batch_out *b, const struct snapshot *s)
{
	int rc;

	check_selection(b, s);
	check_guests(b, s);
	check_exits(b, s);
	rc = b->format->record(b->state, b->out, s);
	if (rc)
		return rc;
	rc = out_flush(b->out);
	if (rc)
		return rc;
	b->records++;
	return b->o->iterations && b->records >= b->o->iterations;
}

int batch_out_status(const struct batch_out *b, int rc, const char *err)
{
	/* Whoever read us has had enough, or the user ended a run that was stuck. */
	if (rc == -EPIPE || rc == -EINTR)
		rc = 0;
	if (rc) {
		if (err[0])
			fprintf(stderr, "kvmtop: %s\n", err);
		else
			fprintf(stderr, "kvmtop: cannot write the figures: %s\n", strerror(-rc));
		return STATUS_FAILED;
	}
	return b->o->when && when_matched(b->o->when) ? STATUS_MATCHED : STATUS_OK;
}

void batch_out_close(struct batch_out *b)
{
	if (b->format)
		b->format->close(b->state);
	out_free(b->out);
	if (b->sigfd >= 0)
		close(b->sigfd);
}
