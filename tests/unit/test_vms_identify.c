// SPDX-License-Identifier: GPL-2.0-only
/* Names out of command lines, machine scopes, thread names and libvirt's XML. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "vms_identify.h"
#include "vms_libvirt.h"

/* A command line with blanks between the arguments ('\1' is a blank inside of one). */
static struct vm_identity identify(const char *line, const char *comm, const char *cgroup)
{
	struct vm_identity id;
	char buf[2048];
	size_t n = strlen(line);

	memcpy(buf, line, n + 1);
	for (size_t i = 0; i < n; i++)
		buf[i] = buf[i] == ' ' ? '\0' : buf[i] == '\1' ? ' ' : buf[i];
	vms_identify(buf, n ? n + 1 : 0, "", comm, 4711, cgroup, &id);
	return id;
}

static void names_of_qemu(void **state)
{
	static const struct {
		const char *line, *name;
	} cases[] = {
		{"/usr/bin/qemu-system-x86_64 -name guest=web01,debug-threads=on -m 1G", "web01"},
		{"/usr/libexec/qemu-kvm -name web01 -m 1G", "web01"},
		{"qemu-system-aarch64 -name=web01", "web01"},
		{"qemu-system-x86_64 --name guest=web01", "web01"},
		{"qemu-system-x86_64 -name debug-threads=on,guest=web01", "web01"},
		{"qemu-system-x86_64 -name guest=a,,b,,,,c,process=x", "a,b,,c"},
		{"qemu-system-x86_64 -name a,,b,debug-threads=on", "a,b"},
		{"kvm -id 100 -name vm100,debug-threads=on", "vm100"},
		{"qemu-system-x86_64 -name guest=two\1words", "two words"},
		{"qemu-system-x86_64 -name guest=\xe6\x97\xa5-\xc3\xbc", "\xe6\x97\xa5-\xc3\xbc"},
		{"qemu-system-x86_64 -name guest=\x1b[2Jx", "\x1b[2Jx"},
		{"qemu-system-x86_64 -name a=b", "a=b"},
		{"qemu-system-x86_64 -name guest=k=v", "k=v"},
		/* Given twice: what QEMU 7.2's query-name answers. */
		{"qemu-system-x86_64 -name first -name second", "second"},
		{"qemu-system-x86_64 -name first -name process=zz", "first"},
		{"qemu-system-x86_64 -name first,debug-threads=on -name guest=third", "third"},
		{"qemu-system-x86_64 -name guest=a,guest=b", "b"},
		{"qemu-system-x86_64 -name on,guest=q", "q"},
		{"qemu-system-x86_64 -name a,process=p,debug-threads=off,guest=z", "z"},
		{"qemu-system-x86_64 -name a,", "a"},
		{"qemu-system-x86_64 -name ,,", ","},
		{"qemu-system-x86_64 -name nodebug,nodebug-threads", "nodebug"},
		{"qemu-system-x86_64 -m 1G", "qemu-system-x86:4711"},
		{"qemu-system-x86_64 -name", "qemu-system-x86:4711"},
		{"qemu-system-x86_64 -name debug-threads=on", "qemu-system-x86:4711"},
		{"qemu-system-x86_64 -name guest=,debug-threads=on", "qemu-system-x86:4711"},
		{"qemu-system-x86_64 -name \1\1", "qemu-system-x86:4711"},
		{"", "qemu-system-x86:4711"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vm_identity id = identify(cases[i].line, "qemu-system-x86", "");

		assert_string_equal(id.name, cases[i].name);
		assert_string_equal(id.vmm, "qemu");
	}
	assert_string_equal(identify("qemu-kvm -uuid 8f7c-1 -name x", "qemu-kvm", "").uuid,
			    "8f7c-1");
	assert_string_equal(identify("qemu-kvm -uuid 8f7c-1 -uuid 8f7c-2", "qemu-kvm", "").uuid,
			    "8f7c-2");
}

/* After those VMMs' documented interfaces; none of them is in Debian 12, no line is recorded. */
static void names_of_other_vmms(void **state)
{
	static const struct {
		const char *line, *comm, *vmm, *name;
	} cases[] = {
		{"/firecracker --id i-0a1 --api-sock /run/fc.sock", "firecracker", "firecracker",
		 "i-0a1"},
		{"firecracker --id=i-0a1", "firecracker", "firecracker", "i-0a1"},
		{"firecracker --api-sock /tmp/vm7.socket", "firecracker", "firecracker", "vm7"},
		{"firecracker --api-sock /srv/vm7/firecracker.socket", "firecracker", "firecracker",
		 "vm7"},
		{"firecracker --api-sock /run/firecracker.socket", "firecracker", "firecracker",
		 "firecracker"},
		{"cloud-hypervisor --api-socket path=/run/ch/db1.sock --cpus boot=2",
		 "cloud-hyperviso", "cloud-hyperviso", "db1"},
		{"cloud-hypervisor --api-socket /run/vc/vm/0ab/clh-api.sock", "cloud-hyperviso",
		 "cloud-hyperviso", "0ab"},
		{"crosvm run --name termina -s /run/c.sock", "crosvm", "crosvm", "termina"},
		{"crosvm run -s /run/vm/borealis.sock", "crosvm", "crosvm", "borealis"},
		{"lkvm run --name build7 -c 2", "lkvm", "kvmtool", "build7"},
		{"lkvm run -c 2", "lkvm", "kvmtool", "lkvm:4711"},
		{"VBoxHeadless --comment build\0019 --startvm 4b6b-1 --vrde config", "VBoxHeadless",
		 "virtualbox", "build 9"},
		{"/opt/myvmm --name x", "myvmm", "myvmm", "myvmm:4711"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vm_identity id = identify(cases[i].line, cases[i].comm, "");

		assert_string_equal(id.vmm, cases[i].vmm);
		assert_string_equal(id.name, cases[i].name);
	}
	assert_string_equal(identify("cloud-hypervisor --platform num_pci_segments=1,uuid=77-a",
				     "cloud-hyperviso", "")
				    .uuid,
			    "77-a");
}

/* The program's file counts more than what the process calls itself. */
static void the_programs_file(void **state)
{
	static const char cmdline[] = "vm\0-name\0web01";
	struct vm_identity id;

	(void)state;
	vms_identify(cmdline, sizeof(cmdline), "/usr/bin/qemu-system-x86_64 (deleted)", "vm", 1, "",
		     &id);
	assert_string_equal(id.vmm, "qemu");
	assert_string_equal(id.name, "web01");
	assert_null(vms_vmm_of("qemu-img"));
	assert_null(vms_vmm_of("kvmtop"));
	assert_string_equal(vms_vmm_of("/usr/bin/kvm"), "qemu");
}

static void machine_scopes(void **state)
{
	char out[256];

	(void)state;
	assert_true(
		vms_machine_name("/machine.slice/machine-qemu\\x2d1\\x2dweb01.scope", out, 256));
	assert_string_equal(out, "web01");
	assert_true(vms_machine_name(
		"/machine.slice/machine-qemu\\x2d12\\x2da\\x2db.scope/libvirt/emulator", out, 256));
	assert_string_equal(out, "a-b");
	assert_true(vms_machine_name("/machine/qemu-3-db.libvirt-qemu/emulator", out, 256));
	assert_string_equal(out, "db");
	/* Recorded (tests/data/roots/ORIGIN): libvirt takes out what a unit's name may not hold. */
	assert_true(vms_machine_name("/machine.slice/machine-qemu\\x2d1\\x2dinstance\\x2d000000a1"
				     ".scope/libvirt/emulator",
				     out, 256));
	assert_string_equal(out, "instance-000000a1");
	assert_true(vms_machine_name("/machine.slice/machine-qemu\\x2d2\\x2ddb1\\x2db.scope", out,
				     256));
	assert_string_equal(out, "db1-b");
	assert_true(
		vms_machine_name("/machine/qemu-1-instance-000000a1.libvirt-qemu/vcpu0", out, 256));
	assert_string_equal(out, "instance-000000a1");
	assert_true(vms_machine_name("/machine.slice/machine-plain.scope", out, 256));
	assert_string_equal(out, "plain");
	assert_false(vms_machine_name("/system.slice/machine-x.service", out, 256));
	assert_false(vms_machine_name("/user.slice/session-3.scope", out, 256));
	assert_false(vms_machine_name("/machine-.scope", out, 256));
	assert_false(vms_machine_name("", out, 256));
	/* An escaped NUL stays as it stands: it must not cut the name. */
	assert_true(vms_machine_name("/machine-a\\x00b.scope", out, 256));
	assert_string_equal(out, "a\\x00b");
	assert_string_equal(identify("qemu-system-x86_64 -m 1", "qemu-system-x86",
				     "/machine.slice/machine-qemu\\x2d1\\x2dweb01.scope")
				    .name,
			    "web01");
}

static void numbers_of_threads(void **state)
{
	(void)state;
	assert_int_equal(vms_vcpu_index("CPU 0/KVM"), 0);
	assert_int_equal(vms_vcpu_index("CPU 127/KVM"), 127);
	assert_int_equal(vms_vcpu_index("fc_vcpu 3"), 3);
	assert_int_equal(vms_vcpu_index("vcpu3"), 3);
	assert_int_equal(vms_vcpu_index("kvm-vcpu-3"), 3);
	assert_int_equal(vms_vcpu_index("crosvm_vcpu3"), 3);
	assert_int_equal(vms_vcpu_index("CPU 0/TCG"), -1);
	assert_int_equal(vms_vcpu_index("qemu-system-x86"), -1);
	assert_int_equal(vms_vcpu_index("vcpu"), -1);
	assert_int_equal(vms_vcpu_index("vcpu3x"), -1);
	assert_int_equal(vms_vcpu_index("CPU /KVM"), -1);
	assert_int_equal(vms_vcpu_index(""), -1);
	assert_int_equal(vms_vcpu_index("vp-7"), 7);
}

static void numbers_of_helpers(void **state)
{
	bool inner = true;

	(void)state;
	assert_int_equal(vms_helper_of("vhost-4711", &inner), 4711);
	assert_false(inner);
	assert_int_equal(vms_helper_of("kvm-nx-lpage-recovery-9", &inner), 9);
	assert_false(inner);
	assert_int_equal(vms_helper_of("kvm-pit/12", &inner), 12);
	assert_true(inner);
	assert_int_equal(vms_helper_of("vhost-net", &inner), 0);
	assert_int_equal(vms_helper_of("kvm-nx-lpage-re", &inner), 0);
}

/* A recorded file of libvirt's (tests/data/roots/ORIGIN). */
static void libvirts_file(void **state)
{
	static char xml[65536];
	FILE *f = fopen("tests/data/roots/libvirt-9.0-systemd/run/libvirt/qemu/"
			"instance-000000a1.xml",
			"r");
	struct libvirt_domain d;
	size_t n;

	(void)state;
	assert_non_null(f);
	n = fread(xml, 1, sizeof(xml), f);
	fclose(f);
	assert_int_equal(libvirt_parse(xml, n, &d), 0);
	assert_int_equal(d.pid, 28121);
	assert_string_equal(d.name, "instance-000000a1");
	assert_string_equal(d.uuid, "8f7c2c1e-1b2d-4c3e-9f00-0000000000a1");
	assert_string_equal(d.title, "Web front & mail");
	assert_string_equal(d.nova, "web-frontend");
	assert_int_equal(d.nvcpu, 2);
	assert_int_equal(d.vcpu[0].tid, 28825);
	assert_string_equal(d.vcpu[0].pin, "0");
	assert_int_equal(d.vcpu[1].tid, 28828);
	assert_string_equal(d.vcpu[1].pin, "0-1");
	libvirt_free(&d);
	/* Cut off anywhere it is no XML. */
	for (size_t cut = 0; cut < n; cut += 997)
		assert_int_equal(libvirt_parse(xml, cut, &d), -EBADMSG);
}

static void bad_xml(void **state)
{
	static const char bomb[] = "<?xml version='1.0'?><!DOCTYPE d [<!ENTITY a 'aaaaaaaaaa'>"
				   "<!ENTITY b '&a;&a;&a;&a;'>]><domain><name>&b;</name></domain>";
	static const char *const bad[] = {"", "<domain>", "no xml", "<other/>",
					  "<domain><vcpus><vcpu id='0'/></domain>"};
	char deep[4096] = "";
	struct libvirt_domain d;

	(void)state;
	assert_int_equal(libvirt_parse(bomb, strlen(bomb), &d), -EBADMSG);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(libvirt_parse(bad[i], strlen(bad[i]), &d), -EBADMSG);
	for (int i = 0; i < 1000; i++)
		strcat(deep, "<a>");
	assert_int_equal(libvirt_parse(deep, strlen(deep), &d), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_qemu),      cmocka_unit_test(names_of_other_vmms),
		cmocka_unit_test(the_programs_file),  cmocka_unit_test(machine_scopes),
		cmocka_unit_test(numbers_of_threads), cmocka_unit_test(numbers_of_helpers),
		cmocka_unit_test(libvirts_file),      cmocka_unit_test(bad_xml),
	};

	return cmocka_run_group_tests_name("vms_identify", tests, NULL, NULL);
}
