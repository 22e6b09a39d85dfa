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

static void probe_kvm(const struct sysroot *root, struct probes *out)
{
	if (exists(root, "dev/kvm"))
		probe_add(out, "KVM", SOURCE_OK, NULL, "works");
	else if (exists(root, "sys/module/kvm"))
		probe_add(out, "KVM", SOURCE_PARTIAL, NULL,
			  "the module kvm is loaded, but there is no /dev/kvm here: VMs can be "
			  "watched, the demo cannot start");
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
