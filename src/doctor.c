// SPDX-License-Identifier: GPL-2.0-only
/* What the host is, and of each source of figures whether it works (doctor.h). It only looks. */
#include "doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "collector.h"
#include "load.h"
#include "options.h"
#include "sysroot.h"

__attribute__((format(printf, 3, 4))) static void fact(struct doctor_report *r, const char *id,
						       const char *fmt, ...)
{
	struct doctor_fact *f;
	va_list ap;

	if (r->nfacts == sizeof(r->fact) / sizeof(r->fact[0]))
		return;
	f = &r->fact[r->nfacts++];
	f->id = id;
	va_start(ap, fmt);
	vsnprintf(f->value, sizeof(f->value), fmt, ap);
	va_end(ap);
}

/* The first line of a small file, "" where there is none. */
static const char *first_line(const struct sysroot *root, const char *path, char *buf, size_t size)
{
	if (sysroot_read(root, path, buf, size) < 0)
		buf[0] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return buf;
}

/* The value behind "name : " in /proc/cpuinfo or "Name:" in a status file; "" none. */
static void value_of(const char *text, const char *name, char *out, size_t size)
{
	size_t n = strlen(name);

	out[0] = '\0';
	for (const char *p = text; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
		const char *v = p + n;

		if (strncmp(p, name, n) != 0)
			continue;
		v += strspn(v, " \t");
		if (*v++ != ':')
			continue;
		v += strspn(v, " \t");
		snprintf(out, size, "%.*s", (int)strcspn(v, "\n"), v);
		return;
	}
}

static bool has_flag(const char *flags, const char *flag)
{
	size_t n = strlen(flag);

	for (const char *p = strstr(flags, flag); p; p = strstr(p + 1, flag))
		if ((p == flags || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
			return true;
	return false;
}

static void cpu_facts(struct doctor_report *r, const struct sysroot *root)
{
	char text[8192], vendor[64], model[96], flags[6000];
	const char *virt;

	if (sysroot_read(root, "proc/cpuinfo", text, sizeof(text)) < 0 && !text[0])
		return;
	value_of(text, "vendor_id", vendor, sizeof(vendor));
	value_of(text, "model name", model, sizeof(model));
	value_of(text, "flags", flags, sizeof(flags));
	virt = has_flag(flags, "vmx") ? "vmx" : has_flag(flags, "svm") ? "svm" : "none";
	fact(r, "cpu", "%s%s%s", vendor, vendor[0] && model[0] ? ", " : "", model);
	fact(r, "virtualization", "%s%s", flags[0] ? virt : "",
	     has_flag(flags, "hypervisor") ? ", this host is a guest itself" : "");
}

/* kvm and what backs it: kvm_intel, kvm_amd, or another module of that kind. */
static void kvm_fact(struct doctor_report *r, const struct sysroot *root)
{
	DIR *d = sysroot_opendir(root, "sys/module");
	char found[160] = "", buf[8];
	const struct dirent *e;
	size_t n = 0;

	while (d && (e = readdir(d)) != NULL) {
		int len;

		if (strcmp(e->d_name, "kvm") != 0 && strncmp(e->d_name, "kvm_", 4) != 0)
			continue;
		len = snprintf(found + n, sizeof(found) - n, "%s%s", n ? " " : "", e->d_name);
		if (len < 0 || (size_t)len >= sizeof(found) - n)
			break;
		n += (size_t)len;
	}
	if (d)
		closedir(d);
	fact(r, "kvm_modules", "%s", found);
	if (first_line(root, "sys/module/kvm/parameters/enable_pmu", buf, sizeof(buf))[0])
		fact(r, "kvm_enable_pmu", "%s", buf);
}

static void mount_fact(struct doctor_report *r, const struct sysroot *root, const char *id,
		       const char *path, long magic)
{
	int fd = sysroot_openat(root, path, O_PATH | O_DIRECTORY);
	struct statfs fs;

	if (fd < 0)
		fact(r, id, "no folder /%s", path);
	else if (fstatfs(fd, &fs) == 0 && (long)fs.f_type == magic)
		fact(r, id, "/%s", path);
	else
		fact(r, id, "not mounted at /%s", path);
	if (fd >= 0)
		close(fd);
}

/* "none [integrity] confidentiality": the one in brackets. */
static void lockdown_fact(struct doctor_report *r, const struct sysroot *root)
{
	char buf[128];
	const char *in;

	first_line(root, "sys/kernel/security/lockdown", buf, sizeof(buf));
	in = strchr(buf, '[');
	if (in)
		fact(r, "lockdown", "%.*s", (int)strcspn(in + 1, "]"), in + 1);
	else
		fact(r, "lockdown",
		     "not known: not in this kernel, or mount -t securityfs securityfs "
		     "/sys/kernel/security");
}

/* Those that kvmtop has a use for, with + or -. */
static void capability_fact(struct doctor_report *r)
{
	static const struct {
		unsigned n;
		const char *name;
	} caps[] = {
		{CAP_SYS_ADMIN, "SYS_ADMIN"},
		{CAP_PERFMON, "PERFMON"},
		{CAP_BPF, "BPF"},
		{CAP_SYS_PTRACE, "SYS_PTRACE"},
		{CAP_DAC_READ_SEARCH, "DAC_READ_SEARCH"},
		{CAP_IPC_LOCK, "IPC_LOCK"},
		{CAP_SYS_RESOURCE, "SYS_RESOURCE"},
	};
	char text[4096] = "", word[32], all[160] = "";
	struct sysroot *self;
	unsigned long long set;
	size_t n = 0;

	/* Our own, which --root does not change. */
	if (sysroot_open(NULL, &self) == 0) {
		sysroot_read(self, "proc/self/status", text, sizeof(text));
		sysroot_close(self);
	}
	value_of(text, "CapEff", word, sizeof(word));
	set = strtoull(word, NULL, 16);
	for (size_t i = 0; i < sizeof(caps) / sizeof(caps[0]); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%c%s", i ? " " : "",
				      set >> caps[i].n & 1 ? '+' : '-', caps[i].name);
	fact(r, "user", "uid %u", geteuid());
	fact(r, "capabilities", "%s", all);
}

static void limit_fact(struct doctor_report *r, const char *id, int what)
{
	struct rlimit l;

	if (getrlimit((__rlimit_resource_t)what, &l) < 0)
		return;
	if (l.rlim_cur == RLIM_INFINITY)
		fact(r, id, "unlimited");
	else if (l.rlim_max == RLIM_INFINITY)
		fact(r, id, "%llu, may be raised without limit", (unsigned long long)l.rlim_cur);
	else
		fact(r, id, "%llu, may be raised to %llu", (unsigned long long)l.rlim_cur,
		     (unsigned long long)l.rlim_max);
}

static void namespace_fact(struct doctor_report *r, const struct sysroot *root)
{
	char ns[64];

	if (sysroot_readlinkf(root, ns, sizeof(ns), "proc/self/ns/pid") < 0)
		ns[0] = '\0';
	/* The first one of a boot has this number (PROC_PID_INIT_INO). */
	fact(r, "pid_namespace", "%s%s", ns,
	     !ns[0]			      ? ""
	     : strcmp(ns, "pid:[4026531836]") ? ", not the host's own"
					      : ", the host's own");
}

static void gather_facts(struct doctor_report *r, const struct sysroot *root)
{
	struct utsname u;
	char buf[200];

	if (uname(&u) == 0)
		fact(r, "machine", "%s", u.machine);
	fact(r, "kernel", "%s", first_line(root, "proc/sys/kernel/osrelease", buf, sizeof(buf)));
	cpu_facts(r, root);
	fact(r, "cpus_online", "%s",
	     first_line(root, "sys/devices/system/cpu/online", buf, sizeof(buf)));
	kvm_fact(r, root);
	mount_fact(r, root, "tracefs", "sys/kernel/tracing", 0x74726163);
	mount_fact(r, root, "debugfs", "sys/kernel/debug", 0x64626720);
	lockdown_fact(r, root);
	fact(r, "perf_event_paranoid", "%s",
	     first_line(root, "proc/sys/kernel/perf_event_paranoid", buf, sizeof(buf)));
	fact(r, "perf_event_mlock_kb", "%s",
	     first_line(root, "proc/sys/kernel/perf_event_mlock_kb", buf, sizeof(buf)));
	capability_fact(r);
	limit_fact(r, "rlimit_nofile", RLIMIT_NOFILE);
	limit_fact(r, "rlimit_memlock", RLIMIT_MEMLOCK);
	namespace_fact(r, root);
	fact(r, "root", "%s", sysroot_dir(root));
}

static bool in_list(const char *list, const char *name)
{
	size_t n = strlen(name);

	if (!list)
		return true;
	for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (strncmp(p, name, n) == 0 && (p[n] == ',' || !p[n]))
			return true;
	return false;
}

/* True when anything works at all. */
static bool probe_all(struct doctor_report *r, struct sysroot *root, const struct options *o)
{
	const struct collector_config cfg = {.delay_s = o->delay_s,
					     .threads_by_proc = o->threads_by_proc,
					     .events_how = o->events_how};
	const struct collector_env env = {.root = root, .config = &cfg};
	bool works = false;

	for (size_t i = 0; collectors[i]; i++) {
		struct probes p = {0};

		if (!collectors[i]->probe || !in_list(o->collectors, collectors[i]->name))
			continue;
		collectors[i]->probe(&env, &p);
		for (size_t k = 0; k < p.n; k++) {
			if (r->nlines == sizeof(r->line) / sizeof(r->line[0]))
				break;
			r->line[r->nlines++] = (struct doctor_line){
				.collector = collectors[i]->name, .probe = p.p[k]};
			works |= p.p[k].state != SOURCE_OFF;
		}
	}
	return works;
}

/* The names of the host's kernel. Those of guests are a matter of each VM; the pane tells. */
static void probe_symbols(struct doctor_report *r, struct sysroot *root)
{
	const struct load_context c = {.root = root};
	struct probes p = {0};
	struct loaded l;

	if (r->nlines == sizeof(r->line) / sizeof(r->line[0]))
		return;
	load_host(&c, &l);
	if (l.map)
		probe_add(&p, "host kernel",
			  l.status.state == SYMBOLS_OK ? SOURCE_OK : SOURCE_PARTIAL, l.status.mend,
			  "%s: %zu names%s%s", l.status.state == SYMBOLS_OK ? "works" : "partly",
			  symmap_count(l.map), l.status.why[0] ? ": " : "", l.status.why);
	else
		probe_add(&p, "host kernel", SOURCE_OFF, l.status.mend, "%s: %s", l.status.source,
			  l.status.why);
	symmap_unref(l.map);
	r->line[r->nlines++] = (struct doctor_line){.collector = "symbols", .probe = p.p[0]};
}

bool doctor_gather(const struct options *o, struct sysroot *root, struct doctor_report *r)
{
	bool works;

	gather_facts(r, root);
	works = probe_all(r, root, o);
	if (in_list(o->collectors, "symbols"))
		probe_symbols(r, root);
	return works;
}
