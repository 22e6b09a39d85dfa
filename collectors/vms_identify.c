// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of VMs and VMMs: command lines, machine scopes, thread names.
 *
 * Every VMM is a row of a table; what no row knows is still a VM, called comm:pid.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hex.h"
#include "procfs.h"
#include "vms_identify.h"

/* The arguments of a command line as one looks through them. */
struct args {
	const char *p, *end;
};

/* The next argument, terminated inside the buffer or at its end; NULL: no more. */
static const char *next_arg(struct args *a, size_t *len)
{
	const char *arg = a->p;
	const char *nul;

	if (a->p >= a->end)
		return NULL;
	nul = memchr(a->p, '\0', (size_t)(a->end - a->p));
	*len = (size_t)((nul ? nul : a->end) - arg);
	a->p = nul ? nul + 1 : a->end;
	return arg;
}

static void copy(char *out, size_t size, const char *s, size_t len)
{
	if (len >= size)
		len = size - 1;
	memcpy(out, s, len);
	out[len] = '\0';
}

/*
 * The next option of that name from *a on: "name" matches -name X, --name X, -name=X, --name=X.
 * The value is copied.
 */
static bool next_option(struct args *a, const char *name, char *out, size_t size)
{
	const size_t want = strlen(name);
	const char *arg;
	size_t n;

	while ((arg = next_arg(a, &n))) {
		size_t dashes = n > 1 && arg[0] == '-' ? (arg[1] == '-' ? 2 : 1) : 0;

		if (!dashes || n - dashes < want || memcmp(arg + dashes, name, want) != 0)
			continue;
		if (n - dashes == want) {
			arg = next_arg(a, &n);
			if (!arg)
				return false;
			copy(out, size, arg, n);
			return true;
		}
		if (arg[dashes + want] == '=') {
			copy(out, size, arg + dashes + want + 1, n - dashes - want - 1);
			return true;
		}
	}
	return false;
}

/* The arguments behind the program's name. */
static struct args arguments(const char *cmdline, size_t len)
{
	struct args a = {cmdline, cmdline + len};
	size_t n;

	next_arg(&a, &n);
	return a;
}

static bool find_option(const char *cmdline, size_t len, const char *name, char *out, size_t size)
{
	struct args a = arguments(cmdline, len);

	return next_option(&a, name, out, size);
}

/*
 * One item of a QEMU option list: "a=b,,c,d" gives "a=b,c" and leaves "d". Returns
 * what follows, NULL at the end.
 */
static const char *qemu_item(const char *p, char *out, size_t size)
{
	size_t n = 0;

	for (; *p; p++) {
		if (*p == ',' && p[1] != ',')
			break;
		if (*p == ',')
			p++;
		if (n + 1 < size)
			out[n++] = *p;
	}
	out[n] = '\0';
	return *p ? p + 1 : NULL;
}

/* The key of a suboption list whose value is wanted; `bare` takes a first item without '='. */
static bool suboption(const char *list, const char *key, bool bare, char *out, size_t size)
{
	const size_t n = strlen(key);
	char item[512] = "";
	const char *p = list;

	for (bool first = true; p; first = false) {
		p = qemu_item(p, item, sizeof(item));
		if (!strncmp(item, key, n) && item[n] == '=') {
			copy(out, size, item + n + 1, strlen(item + n + 1));
			return true;
		}
		if (first && bare && *item && !strchr(item, '=')) {
			copy(out, size, item, strlen(item));
			return true;
		}
	}
	return false;
}

/*
 * "guest=web01,debug-threads=on", "web01", "web,,01,process=x"; the last guest= counts. A name
 * with '=' in it that is no known suboption ("a=b", which older versions take) is a name all the
 * same. A list without a name leaves what stands in `out`.
 */
static void qemu_name(const char *list, char *out, size_t size)
{
	static const char *const other[] = {"process=", "debug-threads="};
	char item[1024];
	const char *p = list;

	for (bool first = true; p; first = false) {
		bool is_name = first && *p;

		p = qemu_item(p, item, sizeof(item));
		for (size_t i = 0; is_name && i < sizeof(other) / sizeof(other[0]); i++)
			is_name = strncmp(item, other[i], strlen(other[i])) != 0;
		if (!strncmp(item, "guest=", 6))
			copy(out, size, item + 6, strlen(item + 6));
		else if (is_name)
			copy(out, size, item, strlen(item));
	}
}

/* QEMU merges options that are given twice: what is said last holds. */
static void identify_qemu(const char *cmdline, size_t len, struct vm_identity *id)
{
	struct args a = arguments(cmdline, len);
	char value[1024];

	while (next_option(&a, "name", value, sizeof(value)))
		qemu_name(value, id->name, sizeof(id->name));
	a = arguments(cmdline, len);
	while (next_option(&a, "uuid", value, sizeof(value)))
		copy(id->uuid, sizeof(id->uuid), value, strlen(value));
}

/* Where a socket's name says nothing, its folder is the VM's (Kata: /run/vc/vm/<id>/…). */
static bool is_generic(const char *base)
{
	static const char *const generic[] = {
		"api", "firecracker", "fc",	"clh-api", "cloud-hypervisor",
		"ch",  "api-socket",  "crosvm", "control", "firecracker-api"};

	for (size_t i = 0; i < sizeof(generic) / sizeof(generic[0]); i++)
		if (!strcmp(base, generic[i]))
			return true;
	return false;
}

/* "/tmp/fc7.socket" → "fc7". */
static void name_from_socket(const char *path, char *out, size_t size)
{
	static const char *const tail[] = {".socket", ".sock"};
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const char *dir;
	size_t n = strlen(base);

	for (size_t i = 0; i < sizeof(tail) / sizeof(tail[0]); i++) {
		size_t t = strlen(tail[i]);

		if (n > t && !strcmp(base + n - t, tail[i])) {
			n -= t;
			break;
		}
	}
	copy(out, size, base, n);
	if (!slash || slash == path || !is_generic(out))
		return;
	for (dir = slash; dir > path && dir[-1] != '/';)
		dir--;
	if (dir < slash && strncmp(dir, "run/", 4) != 0 && strncmp(dir, "tmp/", 4) != 0)
		copy(out, size, dir, (size_t)(slash - dir));
}

static void identify_firecracker(const char *cmdline, size_t len, struct vm_identity *id)
{
	char value[1024];

	if (find_option(cmdline, len, "id", value, sizeof(value)))
		copy(id->name, sizeof(id->name), value, strlen(value));
	else if (find_option(cmdline, len, "api-sock", value, sizeof(value)))
		name_from_socket(value, id->name, sizeof(id->name));
}

static void identify_cloud_hypervisor(const char *cmdline, size_t len, struct vm_identity *id)
{
	char value[1024], path[1024];

	if (find_option(cmdline, len, "platform", value, sizeof(value)))
		suboption(value, "uuid", false, id->uuid, sizeof(id->uuid));
	if (!find_option(cmdline, len, "api-socket", value, sizeof(value)))
		return;
	if (suboption(value, "path", true, path, sizeof(path)))
		name_from_socket(path, id->name, sizeof(id->name));
}

static void identify_crosvm(const char *cmdline, size_t len, struct vm_identity *id)
{
	char value[1024];

	if (find_option(cmdline, len, "name", value, sizeof(value)))
		copy(id->name, sizeof(id->name), value, strlen(value));
	else if (find_option(cmdline, len, "socket", value, sizeof(value)) ||
		 find_option(cmdline, len, "s", value, sizeof(value)))
		name_from_socket(value, id->name, sizeof(id->name));
}

static void identify_named(const char *cmdline, size_t len, struct vm_identity *id)
{
	char value[1024];

	if (find_option(cmdline, len, "name", value, sizeof(value)))
		copy(id->name, sizeof(id->name), value, strlen(value));
}

static void identify_virtualbox(const char *cmdline, size_t len, struct vm_identity *id)
{
	char value[1024];

	if (find_option(cmdline, len, "comment", value, sizeof(value)))
		copy(id->name, sizeof(id->name), value, strlen(value));
	if (find_option(cmdline, len, "startvm", value, sizeof(value)))
		copy(id->uuid, sizeof(id->uuid), value, strlen(value));
}

struct vmm_row {
	const char *program; /* begins with this */
	bool whole; /* … and ends there */
	const char *vmm;
	void (*identify)(const char *cmdline, size_t len, struct vm_identity *id);
};

/* comm holds 15 bytes of a name, so the programs stand here no longer than that. */
static const struct vmm_row vmm_rows[] = {
	{"qemu-system-", false, "qemu", identify_qemu},
	{"qemu-kvm", false, "qemu", identify_qemu},
	{"qemu", true, "qemu", identify_qemu},
	{"kvm", true, "qemu", identify_qemu},
	{"firecracker", false, "firecracker", identify_firecracker},
	{"cloud-hyperviso", false, "cloud-hyperviso", identify_cloud_hypervisor},
	{"crosvm", false, "crosvm", identify_crosvm},
	{"lkvm", false, "kvmtool", identify_named},
	{"kvmtool", true, "kvmtool", identify_named},
	{"stratovirt", false, "stratovirt", identify_qemu},
	{"dragonball", false, "dragonball", identify_named},
	{"krunvm", true, "libkrun", identify_named},
	{"muvm", true, "libkrun", identify_named},
	{"VBoxHeadless", true, "virtualbox", identify_virtualbox},
	{"VirtualBoxVM", true, "virtualbox", identify_virtualbox},
	{"openvmm", true, "openvmm", identify_named},
	{"kvmtop-demo", true, "kvmtop-demo", identify_qemu}, /* src/demo.c */
};

static const struct vmm_row *row_of(const char *program)
{
	const char *slash = strrchr(program, '/');

	if (slash)
		program = slash + 1;
	for (size_t i = 0; i < sizeof(vmm_rows) / sizeof(vmm_rows[0]); i++) {
		const struct vmm_row *r = &vmm_rows[i];
		size_t n = strlen(r->program);

		if (!strncmp(program, r->program, n) &&
		    (!r->whole || !program[n] || !strcmp(program + n, " (deleted)")))
			return r;
	}
	return NULL;
}

const char *vms_vmm_of(const char *program)
{
	const struct vmm_row *r = row_of(program);

	return r ? r->vmm : NULL;
}

/* systemd writes what a unit's name may not hold as \xNN. */
static void unescape(const char *s, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < size; i++) {
		if (len - i >= 4 && s[i] == '\\' && s[i + 1] == 'x' && hex_digit(s[i + 2]) >= 0 &&
		    hex_digit(s[i + 3]) >= 0 && (hex_digit(s[i + 2]) || hex_digit(s[i + 3]))) {
			out[n++] = (char)(hex_digit(s[i + 2]) * 16 + hex_digit(s[i + 3]));
			i += 3;
		} else {
			out[n++] = s[i];
		}
	}
	out[n] = '\0';
}

/* "qemu-1-web01" → "web01"; what has no driver and number in front stays as it is. */
static const char *strip_driver(const char *machine)
{
	const char *dash = strchr(machine, '-');
	const char *p;

	if (!dash || dash == machine)
		return machine;
	for (p = dash + 1; *p >= '0' && *p <= '9'; p++)
		;
	return p > dash + 1 && *p == '-' && p[1] ? p + 1 : machine;
}

bool vms_machine_name(const char *cgroup, char *out, size_t size)
{
	static const char scope[] = ".scope", old[] = ".libvirt-qemu", prefix[] = "machine-";
	const char *p = cgroup;

	while (*p) {
		size_t n = strcspn(p, "/");
		char machine[VMS_NAME_MAX];
		const char *name;

		machine[0] = '\0';
		if (n > sizeof(prefix) + sizeof(scope) - 2 &&
		    !memcmp(p, prefix, sizeof(prefix) - 1) &&
		    !memcmp(p + n - sizeof(scope) + 1, scope, sizeof(scope) - 1))
			unescape(p + sizeof(prefix) - 1, n - sizeof(prefix) - sizeof(scope) + 2,
				 machine, sizeof(machine));
		else if (n > sizeof(old) - 1 &&
			 !memcmp(p + n - sizeof(old) + 1, old, sizeof(old) - 1))
			unescape(p, n - sizeof(old) + 1, machine, sizeof(machine));
		name = strip_driver(machine);
		if (*name) {
			copy(out, size, name, strlen(name));
			return true;
		}
		p += n;
		while (*p == '/')
			p++;
	}
	return false;
}

/* A name of nothing but blanks would leave an empty cell on every screen. */
static bool is_blank_text(const char *s)
{
	return !s[strspn(s, " \t\r\n")];
}

void vms_identify(const char *cmdline, size_t len, const char *exe, const char *comm, pid_t pid,
		  const char *cgroup, struct vm_identity *out)
{
	struct args a = {cmdline, cmdline + len};
	const struct vmm_row *row = row_of(exe);
	char program[256];
	const char *arg;
	size_t n;

	memset(out, 0, sizeof(*out));
	arg = next_arg(&a, &n);
	copy(program, sizeof(program), arg ? arg : "", arg ? n : 0);
	if (!row)
		row = row_of(program);
	if (!row)
		row = row_of(comm);
	copy(out->vmm, sizeof(out->vmm), row ? row->vmm : comm, strlen(row ? row->vmm : comm));
	if (row)
		row->identify(cmdline, len, out);
	if (is_blank_text(out->name) && !vms_machine_name(cgroup, out->name, sizeof(out->name)))
		snprintf(out->name, sizeof(out->name), "%s:%d", comm, (int)pid);
}

struct thread_pattern {
	const char *prefix, *suffix;
};

static const struct thread_pattern vcpu_patterns[] = {
	{"CPU ", "/KVM"}, /* QEMU with debug-threads, StratoVirt */
	{"fc_vcpu ", ""}, /* Firecracker */
	{"fc_vcpu", ""},     {"kvm-vcpu-", ""}, /* kvmtool */
	{"crosvm_vcpu", ""}, {"db_vcpu", ""}, /* Dragonball */
	{"vcpu", ""}, /* cloud-hypervisor */
	{"vcpu-", ""},	     {"vcpu_", ""},	{"vcpu ", ""}, {"vp-", ""}, /* OpenVMM */
};

int vms_vcpu_index(const char *comm)
{
	for (size_t i = 0; i < sizeof(vcpu_patterns) / sizeof(vcpu_patterns[0]); i++) {
		const struct thread_pattern *p = &vcpu_patterns[i];
		size_t pre = strlen(p->prefix), suf = strlen(p->suffix), n = strlen(comm);
		char digits[12];
		int v;

		if (n <= pre + suf || n - pre - suf >= sizeof(digits) ||
		    strncmp(comm, p->prefix, pre) != 0 || strcmp(comm + n - suf, p->suffix) != 0)
			continue;
		copy(digits, sizeof(digits), comm + pre, n - pre - suf);
		if (!procfs_parse_id(digits, &v))
			return v;
	}
	return -1;
}

pid_t vms_helper_of(const char *comm, bool *inner)
{
	static const char *const prefix[] = {"vhost-", "kvm-nx-lpage-recovery-", "kvm-pit/"};
	const size_t pit = 2;
	int v;

	for (size_t i = 0; i < sizeof(prefix) / sizeof(prefix[0]); i++) {
		size_t n = strlen(prefix[i]);

		if (strncmp(comm, prefix[i], n) != 0 || procfs_parse_id(comm + n, &v))
			continue;
		*inner = i == pit;
		return v;
	}
	return 0;
}
