// SPDX-License-Identifier: GPL-2.0-only
/* Which VMs and vCPUs are wanted (filter.h). */
#include "filter.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text.h"

/* Of a regular expression: characters, and the {repetitions} multiplied with each other. */
#define MAX_PATTERN 256
#define MAX_COPIES 1000UL

struct name {
	char *text; /* NULL where regex is used */
	regex_t regex;
};

struct number {
	long n;
	bool kvm_id;
};

struct filter {
	struct number *pid, *vcpu;
	struct name *name;
	size_t npid, nvcpu, nname;
};

struct filter *filter_new(void)
{
	return calloc(1, sizeof(struct filter));
}

void filter_free(struct filter *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nname; i++) {
		if (f->name[i].text)
			free(f->name[i].text);
		else
			regfree(&f->name[i].regex);
	}
	free(f->name);
	free(f->pid);
	free(f->vcpu);
	free(f);
}

static int grow(void **array, size_t n, size_t size)
{
	void *grown = reallocarray(*array, n + 1, size);

	if (!grown)
		return -ENOMEM;
	*array = grown;
	return 0;
}

static int invalid(char *err, size_t size, const char *what, const char *text, const char *mend)
{
	char safe[80];

	text_escape(safe, sizeof(safe), text);
	snprintf(err, size, "%s '%s': %s", what, safe, mend);
	return -EINVAL;
}

/* Digits only, up to most; -1 for anything else ("+1", " 1", "1x", ""). */
static long parse_digits(const char *s, size_t len, long most)
{
	long n = 0;

	if (!len)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		n = n * 10 + (s[i] - '0');
		if (n > most)
			return -1;
	}
	return n;
}

int filter_add_pids(struct filter *f, const char *list, char *err, size_t size)
{
	for (const char *p = list;;) {
		size_t len = strcspn(p, ",");
		long n = parse_digits(p, len, 4194304); /* the kernel's PID_MAX_LIMIT */

		if (n <= 0)
			return invalid(err, size, "-p", list,
				       "not a list of process ids: give numbers, as in -p 23,42");
		if (grow((void **)&f->pid, f->npid, sizeof(*f->pid)))
			return -ENOMEM;
		f->pid[f->npid++] = (struct number){.n = n};
		if (!p[len])
			return 0;
		p += len + 1;
	}
}

int filter_add_vcpus(struct filter *f, const char *list, char *err, size_t size)
{
	for (const char *p = list;;) {
		bool kvm_id = strncmp(p, "id:", 3) == 0;
		const char *digits = p + (kvm_id ? 3 : 0);
		size_t len = strcspn(digits, ",");
		long n = parse_digits(digits, len, 1 << 20);

		if (n < 0)
			return invalid(
				err, size, "--vcpu", list,
				"not a list of vCPU numbers: give 0,3 or KVM's own ids as id:5");
		if (grow((void **)&f->vcpu, f->nvcpu, sizeof(*f->vcpu)))
			return -ENOMEM;
		f->vcpu[f->nvcpu++] = (struct number){.n = n, .kvm_id = kvm_id};
		if (!digits[len])
			return 0;
		p = digits + len + 1;
	}
}

/*
 * regcomp() copies what is repeated, once for each time, and calls itself for each bracket:
 * a few characters, as in ((a{255}){255}){255}, take all memory, and long ones all of the stack.
 */
static bool too_big(const char *pattern)
{
	unsigned long copies = 1;

	if (strlen(pattern) > MAX_PATTERN)
		return true;
	for (const char *p = strchr(pattern, '{'); p; p = strchr(p + 1, '{')) {
		const char *comma = strpbrk(p, ",}");
		unsigned long n = strtoul(p + 1, NULL, 10), m = 0;

		if (comma && *comma == ',')
			m = strtoul(comma + 1, NULL, 10);
		n = n > m ? n : m;
		if (n > MAX_COPIES || (copies *= n ? n : 1) > MAX_COPIES)
			return true;
	}
	return false;
}

static int add_regex(struct name *n, const char *spec, size_t len, char *err, size_t size)
{
	char *pattern = strndup(spec + 1, len - 2);
	char why[100], text[160];
	int rc;

	if (!pattern)
		return -ENOMEM;
	if (too_big(pattern)) {
		free(pattern);
		return invalid(err, size, "-M", spec,
			       "too big a regular expression: give a shorter one with fewer {}");
	}
	rc = regcomp(&n->regex, pattern, REG_EXTENDED | REG_NOSUB);
	free(pattern);
	if (!rc)
		return 0;
	regerror(rc, &n->regex, why, sizeof(why));
	snprintf(text, sizeof(text), "%s: mend the extended regular expression", why);
	return invalid(err, size, "-M", spec, text);
}

int filter_add_vm(struct filter *f, const char *spec, char *err, size_t size)
{
	size_t len = strlen(spec);
	struct name n = {0};
	int rc = 0;

	if (!len)
		return invalid(err, size, "-M", spec,
			       "no name: give a VM's name, its UUID or /a regular expression/");
	if (grow((void **)&f->name, f->nname, sizeof(*f->name)))
		return -ENOMEM;
	if (len > 2 && spec[0] == '/' && spec[len - 1] == '/') {
		rc = add_regex(&n, spec, len, err, size);
	} else {
		n.text = strdup(spec);
		if (!n.text)
			rc = -ENOMEM;
	}
	if (rc)
		return rc;
	f->name[f->nname++] = n;
	return 0;
}

bool filter_has_vms(const struct filter *f)
{
	return f->npid || f->nname;
}

bool filter_has_vcpus(const struct filter *f)
{
	return f->nvcpu;
}

static bool name_matches(const struct name *n, const struct snap_vm *vm)
{
	if (!n->text)
		return regexec(&n->regex, vm->name, 0, NULL, 0) == 0;
	return strcmp(n->text, vm->name) == 0 || (vm->title && strcmp(n->text, vm->title) == 0) ||
	       (vm->vm_id && strcmp(n->text, vm->vm_id) == 0) ||
	       (vm->uuid && strcasecmp(n->text, vm->uuid) == 0);
}

bool filter_vm(const struct filter *f, const struct snap_vm *vm)
{
	bool pid = !f->npid, name = !f->nname;

	for (size_t i = 0; i < f->npid && !pid; i++)
		pid = f->pid[i].n == vm->pid;
	for (size_t i = 0; i < f->nname && !name; i++)
		name = name_matches(&f->name[i], vm);
	return pid && name;
}

bool filter_vcpu(const struct filter *f, const struct snap_vcpu *v)
{
	if (!f->nvcpu)
		return true;
	for (size_t i = 0; i < f->nvcpu; i++)
		if (f->vcpu[i].n == (f->vcpu[i].kvm_id ? v->kvm_id : v->index))
			return true;
	return false;
}
