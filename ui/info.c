// SPDX-License-Identifier: GPL-2.0-only
/* The selected row in full: what a VM or vCPU is, rather than what it does. */
#include <stdio.h>
#include <string.h>

#include "text.h"
#include "ui_priv.h"

#define INFO_TEXT 8192

static void add_text(struct page *p, const char *label, const char *text)
{
	char safe[INFO_TEXT];

	if (!text || !*text)
		return;
	text_escape(safe, sizeof(safe), text);
	page_add(p, ROLE_DIM, label, ROLE_TEXT, safe);
}

static void add_quality(struct page *p, unsigned quality)
{
	if (quality & SNAP_QUALITY_GUESSED)
		page_addf(p, "found",
			  "guessed from its threads: without rights nobody can be sure");
	if (quality & SNAP_QUALITY_PROVISIONAL)
		page_addf(p, "found", "by an event of an unknown thread; not identified yet");
	if (quality & SNAP_QUALITY_GONE)
		page_addf(p, "state", "ended in this interval");
}

static void add_quota(struct page *p, const struct snap_vm *vm)
{
	char throt[16];

	if (!vm->quota_us || !vm->period_us) {
		page_addf(p, "CPU quota", "none");
		return;
	}
	fmt_pct(throt, sizeof(throt), vm->use.throt, 6);
	page_addf(p, "CPU quota", "%.1f%% of one CPU (%llu of %llu us); held back %s%% of the time",
		  100.0 * (double)vm->quota_us / (double)vm->period_us,
		  (unsigned long long)vm->quota_us, (unsigned long long)vm->period_us, throt);
	add_text(p, vm->quota_shared ? "  shared, by" : "  by", vm->quota_file);
}

static bool same_pin(const struct snap_vcpu *a, const struct snap_vcpu *b)
{
	return a->pin && b->pin && *a->pin && strcmp(a->pin, b->pin) == 0;
}

/* "0-2,5": the vCPUs from v[first] on that have its pin. Returns where the text ends. */
static size_t put_indices(char *text, size_t at, size_t size, const struct snap_vcpu *v, uint32_t n,
			  uint32_t first)
{
	const char *comma = "";

	for (uint32_t i = first, last; i < n && at + 64 < size; i = last + 1) {
		last = i;
		if (!same_pin(&v[i], &v[first]))
			continue;
		while (last + 1 < n && v[last + 1].index == v[last].index + 1 &&
		       same_pin(&v[last + 1], &v[first]))
			last++;
		at += (size_t)snprintf(text + at, size - at, "%s%d", comma, v[i].index);
		if (last > i)
			at += (size_t)snprintf(text + at, size - at, "-%d", v[last].index);
		comma = ",";
	}
	return at;
}

/* vCPUs of equal pins together: a VM of hundreds has a few kinds of them. */
static void add_pins(struct page *p, const struct snapshot *s, const struct snap_vm *vm)
{
	const struct snap_vcpu *v = &s->vcpus[vm->vcpu_first];
	char text[INFO_TEXT];
	size_t at = 0;

	for (uint32_t i = 0; i < vm->vcpu_n && at + 128 < sizeof(text); i++) {
		bool said = !same_pin(&v[i], &v[i]);

		for (uint32_t k = 0; k < i && !said; k++)
			said = same_pin(&v[k], &v[i]);
		if (said)
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s", at ? ", " : "");
		at = put_indices(text, at, sizeof(text), v, vm->vcpu_n, i);
		at += (size_t)snprintf(text + at, sizeof(text) - at, ": %.32s", v[i].pin);
	}
	if (at)
		add_text(p, "pins (vCPU: CPUs)", text);
}

/* What a row shows as n/a or marks with ~, and why. */
static void add_reason(struct page *p, const char *title, struct value v)
{
	char label[32];

	if ((v.state != VALUE_NA && v.state != VALUE_PARTIAL) || v.why == WHY_NONE)
		return;
	snprintf(label, sizeof(label), "%s: %s", title, v.state == VALUE_NA ? "n/a" : "~");
	page_addf(p, label, "%s", value_why_text(v.why));
}

static void add_reasons(struct page *p, const struct snap_use *use, const struct snap_exits *ex)
{
	add_reason(p, "%CPU", use->cpu);
	add_reason(p, "%STEAL", use->steal);
	add_reason(p, "%THROT", use->throt);
	add_reason(p, "EXIT/s", ex->rate);
	add_reason(p, "%EXIT", ex->pct);
}

static void vm_info(struct page *p, const struct snapshot *s, const struct snap_vm *vm)
{
	add_text(p, "name", vm->name);
	add_text(p, "title", vm->title);
	add_text(p, "UUID", vm->uuid);
	add_text(p, "identity", vm->vm_id);
	add_text(p, "VMM", vm->vmm);
	page_addf(p, "PID", "%d", vm->pid);
	page_addf(p, "vCPUs", "%u; %u threads work for it", vm->nvcpu, vm->nthread);
	add_quality(p, vm->quality);
	add_text(p, "cgroup", vm->cgroup);
	add_quota(p, vm);
	add_pins(p, s, vm);
	add_text(p, "steal is read from", vm->steal_source);
	add_reasons(p, &vm->use, &vm->ex);
	add_text(p, "command line", vm->cmdline);
}

static void vcpu_info(struct page *p, const struct snap_vm *vm, const struct snap_vcpu *c)
{
	add_text(p, "VM", vm->name);
	page_addf(p, "vCPU", "%d%s; KVM's id %d", c->index, c->index_guessed ? " (guessed)" : "",
		  c->kvm_id);
	add_quality(p, c->quality);
	if (c->tid)
		page_addf(p, "thread", "%d, state %c", c->tid, c->state ? c->state : '?');
	add_text(p, "thread's name", c->comm);
	if (c->cpu >= 0)
		page_addf(p, "last CPU", "%d", c->cpu);
	add_text(p, "may run on", c->pin);
	add_text(p, "NUMA node", c->node);
	if (c->ex.open && *c->ex.open)
		page_addf(p, "in exit", "%.64s, %.1f s", c->ex.open, c->ex.open_ns.v / 1e9);
	add_reasons(p, &c->use, &c->ex);
}

static void other_info(struct page *p)
{
	page_add(p, ROLE_TEXT, NULL, ROLE_TEXT,
		 "(other) is everything on this host that is no VM: with the VMs above it adds up "
		 "to "
		 "the host line. Enter lists its busiest tasks.");
}

static void all_info(struct page *p)
{
	page_add(p, ROLE_TEXT, NULL, ROLE_TEXT,
		 "(all) is all VMs of this host together. %CPU, %GUEST, %SYS and EXIT/s are sums, "
		 "%STEAL and %EXIT are means over all vCPUs, MAX@v is the worst vCPU's. The panes "
		 "Exits and Access show the exits of all VMs, a row a reason; t: since the start, "
		 "with VMs that are gone. Enter lists the vCPUs of the whole host.");
}

/*
 * What a finding is about: its VM or vCPU; of vCPUs pinned to one CPU it has the first only, and
 * the others are as much concerned.
 */
static bool concerns(const struct snapshot *s, const struct snap_finding *f,
		     const struct snap_vm *vm, const struct snap_vcpu *vcpu)
{
	const struct snap_vcpu *named = f->vcpu >= 0 ? &s->vcpus[f->vcpu] : NULL;

	if (f->vm >= 0 && &s->vms[f->vm] == vm && (!vcpu || !named || named == vcpu))
		return true;
	if (!named || strcmp(f->rule, "pin-overlap") != 0)
		return false;
	for (uint32_t i = 0; i < vm->vcpu_n; i++) {
		const struct snap_vcpu *c = &s->vcpus[vm->vcpu_first + i];

		if ((!vcpu || c == vcpu) && same_pin(c, named))
			return true;
	}
	return false;
}

/*
 * What findings say about it is the first thing to know. beside: of the VM, and not those of
 * this vCPU again.
 */
static void add_findings(struct page *p, const struct snapshot *s, const struct snap_vm *vm,
			 const struct snap_vcpu *vcpu, bool beside)
{
	for (size_t i = 0; i < s->nfindings; i++) {
		const struct snap_finding *f = &s->findings[i];
		char safe[INFO_TEXT];

		if (!concerns(s, f, vm, beside ? NULL : vcpu) ||
		    (beside && concerns(s, f, vm, vcpu)))
			continue;
		text_escape(safe, sizeof(safe), f->text);
		page_add(p, ROLE_WARN, "finding", ROLE_TEXT, safe);
		add_text(p, "look at", f->next);
	}
}

void info_page(struct ui *ui, struct page *p)
{
	const struct snap_vm *vm;
	const struct snap_vcpu *vcpu;

	p->indent = 20;
	ui_list_rows(ui);
	ui_selected(ui, &vm, &vcpu);
	if (vm)
		add_findings(p, ui->shown, vm, vcpu, false);
	if (vm && vcpu) {
		vcpu_info(p, vm, vcpu);
		page_heading(p, "Its VM");
		add_findings(p, ui->shown, vm, vcpu, true);
	}
	if (vm)
		vm_info(p, ui->shown, vm);
	else if (ui_all_selected(ui))
		all_info(p);
	else if (ui_other_selected(ui))
		other_info(p);
	else
		page_add(p, ROLE_DIM, NULL, ROLE_DIM, "no row is selected");
}
