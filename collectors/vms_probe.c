// SPDX-License-Identifier: GPL-2.0-only
/* What stands between this process and knowing every VM, in words. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vms_priv.h"

bool vms_is_debugfs(const struct sysroot *root)
{
	struct statfs sf;
	int fd = sysroot_openat(root, "sys/kernel/debug", O_PATH | O_DIRECTORY);
	bool is = fd >= 0;

	if (fd < 0)
		return false;
	/* Anybody's FUSE mount could pose as it; a recorded tree is what it is. */
	if (sysroot_is_live(root))
		is = !fstatfs(fd, &sf) && sf.f_type == DEBUGFS_MAGIC;
	close(fd);
	return is;
}

static bool exists(const struct sysroot *root, const char *path)
{
	int fd = sysroot_openat(root, path, O_PATH);
	struct stat st;
	bool yes;

	if (fd < 0)
		return false;
	/* hidepid=2 hides a process from stat, not from O_PATH. */
	yes = !fstat(fd, &st);
	close(fd);
	return yes;
}

/* A word of the first line `flags` of /proc/cpuinfo. */
static bool has_flag(const char *cpuinfo, const char *flag)
{
	const char *line = strstr(cpuinfo, "\nflags"), *p;
	size_t n = strlen(flag), len;

	if (!line)
		return false;
	len = strcspn(++line, "\n");
	for (p = strstr(line, flag); p && p < line + len; p = strstr(p + 1, flag))
		if (p[-1] == ' ' && strchr(" \n", p[n]))
			return true;
	return false;
}

/* The modules that run guests, which kvm itself cannot: those of x86 that are loaded. */
static void vendor_modules(const struct sysroot *root, char *out, size_t size)
{
	static const char *const modules[] = {"kvm_intel", "kvm_amd", "kvm_pvm"};
	size_t n = 0;

	out[0] = '\0';
	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		char path[40];

		snprintf(path, sizeof(path), "sys/module/%s", modules[i]);
		if (exists(root, path) && n < size)
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " and " : "",
					      modules[i]);
	}
}

/* kvm is there, and has not been able to make its device. */
static void probe_refused(const struct sysroot *root, struct probes *out)
{
	char cpuinfo[8192] = "", loaded[48];
	bool vmx, svm, none, guest;

	(void)sysroot_read(root, "proc/cpuinfo", cpuinfo, sizeof(cpuinfo)); /* its beginning does */
	vmx = has_flag(cpuinfo, "vmx");
	svm = has_flag(cpuinfo, "svm");
	guest = has_flag(cpuinfo, "hypervisor");
	none = strstr(cpuinfo, "\nflags") && !vmx && !svm;
	vendor_modules(root, loaded, sizeof(loaded));
	if (loaded[0] || (!none && !vmx && !svm))
		probe_add(out, "KVM", SOURCE_PARTIAL, "dmesg | grep -i kvm",
			  "no /dev/kvm: %s is loaded, but can run no guests on this CPU%s: the "
			  "kernel's log has the reason",
			  loaded[0] ? loaded : "kvm",
			  none	? " (neither vmx nor svm)"
			  : vmx ? " (it has vmx)"
			  : svm ? " (it has svm)"
				: "");
	else if (none)
		probe_add(out, "KVM", SOURCE_PARTIAL,
			  guest ? "allow nested virtualization for this guest on its own host"
				: "switch on VT-x or AMD-V in the firmware",
			  "no /dev/kvm: kvm is loaded, but neither kvm_intel nor kvm_amd, which "
			  "need vmx or svm, and this CPU%s has neither",
			  guest ? " (of a guest)" : "");
	else
		probe_add(out, "KVM", SOURCE_PARTIAL,
			  vmx ? "modprobe kvm_intel; dmesg | grep -i kvm"
			      : "modprobe kvm_amd; dmesg | grep -i kvm",
			  "no /dev/kvm: kvm is loaded, but not %s, which runs guests on this CPU "
			  "(it has %s)",
			  vmx ? "kvm_intel" : "kvm_amd", vmx ? "vmx" : "svm");
}

static void probe_no_device(const struct sysroot *root, struct probes *out)
{
	if (exists(root, "sys/class/misc") && !exists(root, "sys/class/misc/kvm"))
		probe_refused(root, out);
	else
		probe_add(out, "KVM", SOURCE_PARTIAL, NULL,
			  "the module kvm is loaded, but there is no /dev/kvm here (a container "
			  "has a /dev of its own): VMs can be watched, the demo cannot start");
}

static void probe_kvm(const struct sysroot *root, struct probes *out)
{
	if (exists(root, "dev/kvm"))
		probe_add(out, "KVM", SOURCE_OK, NULL, "works");
	else if (exists(root, "sys/module/kvm"))
		probe_no_device(root, out);
	else
		probe_add(out, "KVM", SOURCE_OFF, "modprobe kvm_intel || modprobe kvm_amd",
			  "no /dev/kvm: KVM is not loaded, or switched off in the firmware");
}

/* "none [integrity] confidentiality" */
static const char *lockdown(const struct sysroot *root)
{
	char buf[128];

	if (sysroot_read(root, "sys/kernel/security/lockdown", buf, sizeof(buf)) <= 0)
		return "none";
	if (strstr(buf, "[confidentiality]"))
		return "confidentiality";
	return strstr(buf, "[integrity]") ? "integrity" : "none";
}

static void probe_debugfs(const struct sysroot *root, struct probes *out)
{
	const char *lock = lockdown(root);
	int fd;

	if (!vms_is_debugfs(root)) {
		probe_add(out, "debugfs", SOURCE_OFF, "mount -t debugfs debugfs /sys/kernel/debug",
			  "not mounted at /sys/kernel/debug: new VMs are seen later, and vCPU "
			  "threads are known by their names only");
		return;
	}
	fd = sysroot_openat(root, VMS_KVM_DIR, O_RDONLY | O_DIRECTORY);
	if (fd >= 0)
		close(fd);
	if (fd == -EACCES || fd == -EPERM)
		probe_add(out, "debugfs", SOURCE_OFF, "sudo kvmtop",
			  "/sys/kernel/debug/kvm may not be read (%s)",
			  geteuid() ? "not root" : "a security module");
	else if (fd < 0 && exists(root, "sys/module/kvm"))
		probe_add(out, "debugfs", SOURCE_OFF, "dmesg | grep -i kvm",
			  "no folder kvm in /sys/kernel/debug: KVM is loaded, but can run no "
			  "guests here");
	else if (fd < 0)
		probe_add(out, "debugfs", SOURCE_OFF, "modprobe kvm_intel || modprobe kvm_amd",
			  "no folder kvm in /sys/kernel/debug: KVM is not loaded");
	else if (!strcmp(lock, "confidentiality"))
		probe_add(out, "debugfs", SOURCE_PARTIAL, NULL,
			  "lockdown=confidentiality closes its files: vCPU threads are known by "
			  "their names only");
	else if (!strcmp(lock, "integrity"))
		probe_add(out, "debugfs", SOURCE_OK, NULL,
			  "works (lockdown=integrity closes KVM's own statistics, which are not "
			  "needed)");
	else
		probe_add(out, "debugfs", SOURCE_OK, NULL, "works");
}

/* The mount options of /proc: "hidepid=2" or "hidepid=invisible". */
static bool hides_pids(const struct sysroot *root)
{
	char buf[16384], *line, *save = NULL;

	if (sysroot_read(root, "proc/self/mounts", buf, sizeof(buf)) < 0 && !buf[0])
		return false;
	for (line = strtok_r(buf, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *opt = strstr(line, "hidepid=");

		if (strstr(line, " /proc proc ") && opt)
			return opt[8] != '0' && strncmp(opt + 8, "off", 3) != 0;
	}
	return false;
}

/* Reading another user's descriptors takes CAP_SYS_PTRACE, bit 19. */
static bool may_ptrace(const struct sysroot *root)
{
	char buf[4096];
	const char *p;

	if (sysroot_read(root, "proc/self/status", buf, sizeof(buf)) < 0 && !buf[0])
		return true;
	p = strstr(buf, "\nCapEff:");
	return !p || strtoull(p + 8, NULL, 16) & (1ull << 19);
}

static void probe_proc(const struct sysroot *root, struct probes *out)
{
	if (!exists(root, "proc/1") && sysroot_is_live(root)) {
		probe_add(out, "/proc", SOURCE_OFF,
			  hides_pids(root) ? "sudo kvmtop" : "mount -t proc proc /proc",
			  hides_pids(root) ? "mounted with hidepid: other users' processes do not "
					     "show"
					   : "no processes in it: not mounted?");
		return;
	}
	if (sysroot_is_live(root) && !may_ptrace(root))
		probe_add(out, "/proc", SOURCE_PARTIAL, "sudo kvmtop",
			  "other users' descriptors may not be read (no CAP_SYS_PTRACE): their "
			  "VMs are guessed from guest time and thread names");
	else
		probe_add(out, "/proc", SOURCE_OK, NULL, "works");
}

/* Where nothing can be opened, nothing is missing but that. */
static bool out_of_descriptors(const struct sysroot *root)
{
	int fd = sysroot_openat(root, "proc", O_PATH);

	if (fd >= 0)
		close(fd);
	return fd == -EMFILE || fd == -ENFILE;
}

void vms_probe(const struct collector_env *env, struct probes *out)
{
	if (out_of_descriptors(env->root)) {
		probe_add(out, "file descriptors", SOURCE_OFF, "ulimit -n 1024",
			  "none is left: nothing can be looked at");
		return;
	}
	probe_kvm(env->root, out);
	probe_debugfs(env->root, out);
	probe_proc(env->root, out);
	if (sysroot_is_foreign(env->root))
		probe_add(out, "pid namespace", SOURCE_PARTIAL, MEND_PID_NAMESPACE,
			  "this is a container's: VMs outside it do not show, and debugfs' and "
			  "the events' thread numbers are not ours");
	else
		probe_add(out, "pid namespace", SOURCE_OK, NULL,
			  sysroot_is_live(env->root) ? "works: the host's own"
						     : "a recorded tree (fixture)");
}
