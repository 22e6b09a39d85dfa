#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, debugfs, cgroup-cpu, cpus2, cmd:libvirtd, cmd:virsh, cmd:qemu-system-x86_64
# limit: 180
# sanitize: no, libvirtd takes its time to start, and what is read of it is under ASan in the unit tests
"""A real libvirtd with two domains: what virsh says of names, vCPUs, pins, quota and CPU time is
what kvmtop shows, without asking libvirt; also after a change of a running domain.

libvirtd runs in folders, a network namespace and a user database of its own; it sees no system bus, so
that it makes its cgroups itself.
"""

import atexit
import csv
import json
import os
import pwd
import shutil
import subprocess
import sys
import time
import xml.sax.saxutils

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n
import qemu_guest

FOLDERS = ("/run/libvirt", "/var/lib/libvirt", "/var/cache/libvirt", "/var/log/libvirt", "/etc/libvirt")
HIDDEN = ("/run/dbus", "/run/systemd")
ETC = "/etc/libvirt"
SPIN = b"\xeb\xfe"
WEB = {"name": "instance-000000a1", "uuid": "8f7c2c1e-1b2d-4c3e-9f00-0000000000a1"}
DB = {"name": "db,1 \u6f22", "uuid": "8f7c2c1e-1b2d-4c3e-9f00-0000000000db"}
NOVA = """<metadata><nova:instance xmlns:nova="http://openstack.org/xmlns/libvirt/nova/1.1">
<nova:package version="26.1.0"/><nova:name>web-frontend</nova:name>
<nova:flavor name="m1.tiny"><nova:memory>32</nova:memory><nova:vcpus>2</nova:vcpus></nova:flavor>
<nova:owner><nova:user uuid="6d0b">admin</nova:user></nova:owner></nova:instance></metadata>"""


# --- libvirtd -----------------------------------------------------------------------------------
def own_folders():
    """In the mount namespace that the test has: nothing of it stays."""
    for d in FOLDERS:
        os.makedirs(d, exist_ok=True)
        n.sh("mount", "-t", "tmpfs", "tmpfs", d)
    for d in HIDDEN:
        if os.path.isdir(d):
            n.sh("mount", "-t", "tmpfs", "tmpfs", d)
    os.mknod(f"{ETC}/kvm", 0o20666, os.stat("/dev/kvm").st_rdev)
    os.chmod(f"{ETC}/kvm", 0o666)  # QEMU runs as a user of its own
    n.sh("mount", "--bind", f"{ETC}/kvm", "/dev/kvm")


def own_user():
    """The user that Debian's libvirt-daemon-system would make."""
    try:
        pwd.getpwnam("libvirt-qemu")
        return
    except KeyError:
        pass
    for name, line in (("passwd", "libvirt-qemu:x:64055:64055::/var/lib/libvirt:/bin/false\n"),
                       ("group", "libvirt-qemu:x:64055:\nkvm:x:64056:\n")):
        shutil.copy(f"/etc/{name}", f"{ETC}/{name}")
        with open(f"{ETC}/{name}", "a", encoding="ascii") as f:
            f.write(line)
        n.sh("mount", "--bind", f"{ETC}/{name}", f"/etc/{name}")




def forget_cgroups(before):
    """libvirt leaves its folder `machine` behind; a QEMU that was killed is a moment longer in it."""
    end = time.monotonic() + 5
    while (left := set(machines()) - set(before)) and time.monotonic() < end:
        for d in left:
            for path, _, _ in os.walk(d, topdown=False):
                try:
                    os.rmdir(path)
                except OSError:
                    time.sleep(0.05)


def machines():
    tops = ["/sys/fs/cgroup"] + [f"/sys/fs/cgroup/{d}" for d in os.listdir("/sys/fs/cgroup")]
    return [f"{d}/machine" for d in tops if os.path.isdir(f"{d}/machine")]


def start_libvirtd():
    own_folders()
    own_user()
    atexit.register(forget_cgroups, machines())
    os.mkdir(f"{ETC}/bin")  # only one QEMU to ask for what it can: that takes seconds each
    os.symlink(shutil.which("qemu-system-x86_64"), f"{ETC}/bin/qemu-system-x86_64")
    n.put(f"{ETC}/qemu.conf", 'security_driver = "none"\nstdio_handler = "file"\n')
    n.put(f"{ETC}/libvirtd.conf", 'auth_unix_rw = "none"\n')
    with open("/var/log/libvirt/stderr", "wb") as log:
        p = n.child(["unshare", "--net", "env", f"PATH={ETC}/bin", shutil.which("libvirtd"),
                     "-f", f"{ETC}/libvirtd.conf", "-p", f"{ETC}/pid"],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    for domain in (WEB, DB):
        atexit.register(qemu_guest.end_daemon, f"/run/libvirt/qemu/{domain['name']}.pid")
    end = time.monotonic() + 60
    while time.monotonic() < end and p.poll() is None:
        if subprocess.run(["virsh", "-c", "qemu:///system", "list"], capture_output=True,
                          check=False).returncode == 0:
            return None
        time.sleep(0.1)
    with open("/var/log/libvirt/stderr", encoding="utf-8", errors="replace") as f:
        return f.read()[-2000:]


def virsh(*argv):
    return n.sh("virsh", "-q", "-c", "qemu:///system", *argv)


def rows(text):
    """virsh's two columns: {first word: the rest}."""
    return dict(line.split(None, 1) for line in text.splitlines() if line.strip())


def qmp(domain, command):
    return json.loads(virsh("qemu-monitor-command", domain["name"], json.dumps({"execute": command})))["return"]


def threads_of(domain):
    return {c["cpu-index"]: c["thread-id"] for c in qmp(domain, "query-cpus-fast")}


def create(domain, vcpus, more, tune=""):
    path = f"{ETC}/{domain['uuid']}.xml"
    n.put(path, f"""<domain type='kvm'><name>{domain['name']}</name><uuid>{domain['uuid']}</uuid>{more}
<memory unit='MiB'>32</memory>{vcpus}{tune}
<os><type arch='x86_64' machine='pc'>hvm</type><loader type='rom'>{ETC}/rom</loader></os>
<features><acpi/></features>
<devices><emulator>{shutil.which("qemu-system-x86_64")}</emulator></devices></domain>""")
    virsh("create", path)
    with open(f"/run/libvirt/qemu/{domain['name']}.pid", encoding="ascii") as f:
        domain["pid"] = int(f.read())


# --- the comparisons ----------------------------------------------------------------------------
def stats(domain):
    return dict(line.strip().split("=", 1) for line in virsh("domstats", "--vcpu", domain["name"]).splitlines()
                if "=" in line)


def pins(vm):
    return {str(v["vcpu"]): v["pin"] for v in vm["vcpus"]} if vm else None


def who(r):
    for domain, title in ((WEB, "web-frontend"), (DB, "The database & more")):
        vm = n.vm_of(r, domain["pid"]) or {}
        n.same((vm.get("name"), vm.get("uuid"), vm.get("vm_id"), vm.get("title"), vm.get("vmm")),
               (domain["name"], domain["uuid"], domain["uuid"], title, "qemu"),
               f"{domain['name']}: name, UUID and title as libvirt has them")
        n.same(n.tids_of(vm), threads_of(domain), f"{domain['name']}: vCPUs and their threads as QEMU says")


def pinning(r):
    want = rows(virsh("vcpupin", WEB["name"]))
    got = pins(n.vm_of(r, WEB["pid"]))
    n.same(got, {k: want[k] for k in got}, "pins as virsh vcpupin says")
    where = [line.split()[1] for line in virsh("vcpuinfo", WEB["name"]).splitlines() if line.startswith("CPU:")]
    n.same(str(n.vm_of(r, WEB["pid"])["vcpus"][0]["cpu"]), where[0],
           "the pCPU of a pinned vCPU as virsh vcpuinfo says")


def quota(top):
    """CPU time and run delay between two of virsh's looks, against the records between them."""
    top.settle()
    before, t0, seen = stats(WEB), time.time(), len(top.records)
    top.skip(8)
    after, t1 = stats(WEB), time.time()
    mine = [n.vm_of(r, WEB["pid"])["vcpus"][0] for r in top.records[seen:]]
    vm = n.vm_of(top.records[-1], WEB["pid"])

    def mean(key):
        return (int(after[key]) - int(before[key])) / (t1 - t0) / 1e7

    cpu = sum(v["cpu_pct"] for v in mine) / len(mine)
    steal = sum(v["steal_pct"] for v in mine) / len(mine)
    n.near(cpu, mean("vcpu.0.time"), 8, "CPU time as virsh domstats says")
    n.near(steal, mean("vcpu.0.delay"), 12, "steal is the run delay that virsh domstats says")
    n.same(vm["quota_pct"], 10, "its quota is libvirt's")
    n.ok(any(v["own_quota"] and v["throt_pct"] > 20 for v in mine), "a vCPU that spins is held back by its quota",
         [(v["own_quota"], v["throt_pct"], v["wait_pct"]) for v in mine])
    n.ok("/machine" in vm["cgroup"] and "libvirt" in vm["cgroup"], "its cgroup is libvirt's", vm["cgroup"])


def io_threads():
    text = n.run("-b", "-n", "3", "-d", "0.3", "-M", "web-frontend", "--format", "csv", "--table", "thread",
                 check=True).stdout
    got = {r["comm"]: r["role"] for r in csv.DictReader(text.splitlines())}
    n.same({got.get("IO iothread1"), got.get("IO iothread2")}, {"vmm"},
           "found by nova's name; its I/O threads are there")
    n.ok("helper" in got.values(), "so are the kernel's threads that work for it", got)


def changes(top):
    def shows(what, condition):
        if top.until(lambda r: condition(n.vm_of(r, WEB["pid"])), 30, what):
            n.ok(True, what)

    virsh("setvcpus", WEB["name"], "3", "--live")
    want = threads_of(WEB)
    n.same(sorted(want), [0, 1, 2], "libvirt has plugged a vCPU in")
    shows("a vCPU that libvirt plugs in is there", lambda vm: n.tids_of(vm) == want)
    virsh("vcpupin", WEB["name"], "2", "1", "--live")
    shows("its pin changes as virsh vcpupin does", lambda vm: pins(vm).get("2") == "1")
    virsh("desc", WEB["name"], "--live", "--title", "Renamed <now>")
    shows("its title changes as virsh desc does", lambda vm: vm["title"] == "Renamed <now>")
    virsh("schedinfo", WEB["name"], "--live", "--set", "vcpu_quota=-1")
    shows("its quota ends as virsh schedinfo does",
          lambda vm: vm["quota_pct"] is None and vm["throt_pct"] == 0 and vm["vcpus"][0]["cpu_pct"] > 15)
    virsh("suspend", WEB["name"])
    shows("virsh suspend: it stays, its vCPU does nothing", lambda vm: vm and vm["vcpus"][0]["cpu_pct"] == 0)
    virsh("resume", WEB["name"])
    shows("virsh resume: it goes on", lambda vm: vm["vcpus"][0]["cpu_pct"] > 15)
    virsh("destroy", WEB["name"])
    shows("virsh destroy: its row ends", lambda vm: vm is None)
    n.ok(n.vm_of(top.next(), DB["pid"]), "and the other domain's stays")


def main():
    why = start_libvirtd()
    if why is not None:
        n.ok(False, "libvirtd starts", why)
        n.done()
    shutil.copy(qemu_guest.rom(0, SPIN), f"{ETC}/rom")
    create(WEB, "<vcpu placement='static' current='2'>4</vcpu><iothreads>2</iothreads>", NOVA,
           "<cputune><vcpupin vcpu='0' cpuset='0'/><vcpupin vcpu='1' cpuset='0-1'/><emulatorpin cpuset='1'/>"
           "<period>100000</period><quota>10000</quota></cputune>")
    shutil.copy(qemu_guest.rom(0), f"{ETC}/rom")
    create(DB, "<vcpu>1</vcpu>", f"<title>{xml.sax.saxutils.escape('The database & more')}</title>")
    top = n.Kvmtop()
    r = top.until(lambda r: all(n.vm_of(r, d["pid"]) for d in (WEB, DB)), 20, "both domains are found")
    if r:
        r = top.skip(4).records[-1]
        who(r)
        pinning(r)
        quota(top)
        io_threads()
        changes(top)
    bad = [x for r in top.end() for x in n.finite(r)]
    n.same((top.status, bad), (0, []), "every figure is possible")
    virsh("destroy", DB["name"])
    n.done()


main()
