// SPDX-License-Identifier: GPL-2.0-only
/* What a VM is called, and what libvirt adds to it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vms_identify.h"
#include "vms_priv.h"

/* What the screen keeps of a command line; some are 50 KiB long, times a thousand VMs. */
#define CMDLINE_KEPT 8192

static void keep_cmdline(struct inv_vm *vm, char *cmdline, size_t len)
{
	if (len > CMDLINE_KEPT)
		len = CMDLINE_KEPT;
	while (len && !cmdline[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		if (!cmdline[i])
			cmdline[i] = ' ';
	cmdline[len] = '\0';
	inventory_set(&vm->cmdline, len ? cmdline : NULL);
}

static void find_cgroup(const struct vms *s, pid_t pid, char *path, size_t size)
{
	char buf[8192];
	ssize_t n = sysroot_readf(s->root, buf, sizeof(buf), "proc/%d/cgroup", (int)pid);

	path[0] = '\0';
	if (n <= 0)
		return;
	/* A hybrid host has its machines in systemd's own v1 tree, the v2 one has only "/". */
	if (procfs_parse_cgroup(buf, (size_t)n, "cpu", path, size) > 1 ||
	    procfs_parse_cgroup(buf, (size_t)n, NULL, path, size) > 1)
		return;
	procfs_parse_cgroup(buf, (size_t)n, "name=systemd", path, size);
}

void vms_name(struct vms *s, struct vmm *m, struct inv_vm *vm)
{
	struct vm_identity id;
	char cgroup[4096], exe[512];
	ssize_t n;

	n = sysroot_readf(s->root, s->buf, s->buf_size, "proc/%d/cmdline", (int)m->pid);
	if (n == -EFBIG)
		n = (ssize_t)s->buf_size - 1;
	if (n < 0)
		n = 0;
	if (sysroot_readlinkf(s->root, exe, sizeof(exe), "proc/%d/exe", (int)m->pid) < 0)
		exe[0] = '\0';
	find_cgroup(s, m->pid, cgroup, sizeof(cgroup));
	vms_identify(s->buf, (size_t)n, exe, m->comm, m->pid, cgroup, &id);
	memcpy(vm->vmm, id.vmm, sizeof(vm->vmm));
	memcpy(m->base_name, id.name, sizeof(m->base_name));
	inventory_set(&vm->name, id.name);
	inventory_set(&vm->uuid, id.uuid[0] ? id.uuid : NULL);
	inventory_set(&vm->cgroup, cgroup[0] ? cgroup : NULL);
	keep_cmdline(vm, s->buf, (size_t)n);
	inventory_touch(s->inv);
}

static void update(struct vms *s, char **member, const char *text)
{
	if (!*text || (*member && !strcmp(*member, text)))
		return;
	inventory_set(member, text);
	inventory_touch(s->inv);
}

static void apply_pins(struct vms *s, const struct libvirt_domain *d, struct inv_vm *vm)
{
	for (size_t i = 0; i < d->nvcpu; i++)
		for (size_t j = 0; j < vm->nvcpu; j++)
			if (vm->vcpu[j]->index == d->vcpu[i].index)
				update(s, &vm->vcpu[j]->xml_pin, d->vcpu[i].pin);
}

void vms_libvirt(struct vms *s, struct vmm *m)
{
	struct libvirt_domain d;

	if (strcmp(m->vm[0]->vmm, "qemu") != 0)
		return;
	if (!libvirt_read(s->root, m->base_name, &m->xml, &d)) {
		libvirt_free(&m->domain);
		m->domain = d;
	}
	/* Its file may be left over from an earlier life of the domain. */
	if (m->domain.pid != m->pid)
		return;
	for (size_t i = 0; i < m->nvm; i++) {
		update(s, &m->vm[i]->uuid, m->domain.uuid);
		update(s, &m->vm[i]->title, m->domain.title);
		update(s, &m->vm[i]->nova, m->domain.nova);
		apply_pins(s, &m->domain, m->vm[i]);
	}
}
