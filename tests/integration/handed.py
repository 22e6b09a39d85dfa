#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, debugfs
# limit: 240
# beside: yes
"""Whose VM is it? Made by a thread that ended, handed to another process, left behind by its maker:
one row, of the process that can run it, else of the one that keeps it."""

import array
import fcntl
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

CREATE_VM, CREATE_VCPU = 0xAE01, 0xAE41
KEEPER = """
import array, os, socket, sys
s = socket.socket(fileno=int(sys.argv[1]))
data, rights, flags, address = s.recvmsg(1, socket.CMSG_SPACE(64))
s.send(b"x")
s.recv(1)
"""


def make_vm(vcpus):
    """Descriptors of a VM whose making thread has ended; its vCPUs never ran."""
    made = []

    def work():
        kvm = os.open("/dev/kvm", os.O_RDWR)
        made.append(fcntl.ioctl(kvm, CREATE_VM, 0))
        made.extend(fcntl.ioctl(made[0], CREATE_VCPU, i) for i in range(vcpus))
        os.close(kvm)

    t = threading.Thread(target=work)
    t.start()
    t.join()
    return made


def keeper(fds):
    """A process that got these descriptors, and our end of its socket."""
    ours, theirs = socket.socketpair()
    p = n.child([sys.executable, "-c", KEEPER, str(theirs.fileno())], pass_fds=[theirs.fileno()])
    ours.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    ours.recv(1)
    return p, ours


def main():
    me = os.getpid()
    top = n.Kvmtop(delay=0.5)

    def shows(wanted, what):
        """wanted: {process: vCPUs of its VMs} of ours and the keeper's."""
        def got(r):
            return {p: [len(vm["vcpus"]) for vm in n.vms_of(r, p)] for p in wanted}
        if top.until(lambda r: got(r) == wanted, 70, what):
            n.ok(True, what)

    fds = make_vm(2)
    shows({me: [2]}, "a VM whose making thread ended and that never ran is its process's")
    p, s = keeper(fds)
    shows({me: [2], p.pid: []}, "handed to another process it stays its maker's")
    fresh = n.Kvmtop(delay=0.5).skip(10).end()
    n.same({q: len(n.vms_of(fresh[-1], q)) for q in (me, p.pid)}, {me: 1, p.pid: 0},
           "also for one that starts now")
    for fd in fds:
        os.close(fd)
    shows({me: [], p.pid: [2]}, "given up by its maker it is the keeper's")
    again = make_vm(1)
    shows({me: [1], p.pid: [2]}, "the maker's next VM is another one")
    s.close()
    p.wait(20)
    shows({me: [1], p.pid: []}, "it ends with its keeper")
    for fd in again:
        os.close(fd)
    top.end()
    n.same(top.status, 0, "it ends well")
    n.done()


main()
