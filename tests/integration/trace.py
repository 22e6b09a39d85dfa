#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs
# limit: 240
"""kvmtop trace: a real guest's side of the host, a shell's side as the guest's, merged; nothing is left behind.

The shell runs on the host: its TSC is what a guest's with offset 0 is."""

import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import native as n

INSTANCES = n.TRACEFS + "/instances"
SHELL = ("env", "-i", "PATH=" + os.environ["PATH"])


OTHERS = set(os.listdir(INSTANCES))


def read(*path):
    with open(os.path.join(*path), encoding="utf-8", errors="replace") as f:
        return f.read()


def events(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def ours():
    """Others on this host may trace, and a kvmtop that records has an instance as well."""
    return [x for x in os.listdir(INSTANCES)
            if x.startswith("kvmtop-") and x not in OTHERS and not x.endswith("-record")]


def trace(*args, **kw):
    return n.run("trace", *args, limit=120, **kw)


def started(out, *args):
    """kvmtop trace in the background, once it traces."""
    p = n.child([n.KVMTOP, "trace", *map(str, args), "-o", out], stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
    n.wait_for(lambda: os.path.exists(out + "/guest.sh") or os.path.exists(out + "/guest"))
    return p


def whole(guest, folder):
    """Both halves at once, and their merge."""
    out = os.path.join(folder, "whole")
    r = trace(guest.pid, "-o", out, "--for", 1, "--", *SHELL)
    n.same((r.returncode, r.stderr), (0, ""), "host and guest are traced")
    n.same(r.stdout, f"{out}/merged\n", "and it is said where")
    n.same(sorted(os.listdir(out)), ["epochs", "guest", "host", "merged", "offsets"], "the folder has all parts")
    n.same({os.stat(os.path.join(out, x)).st_mode & 0o777 for x in os.listdir(out)}, {0o600}, "for nobody else")
    host, merged = events(read(out, "host")), events(read(out, "merged"))
    pio = [x for x in host if " kvm_pio: " in x]
    n.ok(len(pio) > 20, "the host's half has the guest's exits", len(pio))
    mine = {str(guest.tid(0))}
    seen = {x.split(" [")[0].rsplit("-", 1)[1].split()[0] for x in pio}
    n.same(seen, mine, "and of no other VM")
    n.ok(any(x.startswith("h ") and " kvm_pio: " in x for x in merged), "merged: the host's lines", merged[:5])
    n.ok(any(not x.startswith("h ") and " sched_switch: " in x for x in merged), "merged: the guest's", merged[:5])
    stamps = [int(x.split("] ", 1)[1].split(": ", 1)[0].split()[-1]) for x in merged]
    n.ok(stamps == sorted(stamps), "in one order")
    n.same(ours(), [], "no instance is left")
    two_at_once(guest, folder)
    return out


def two_at_once(guest, folder):
    """Each has a buffer of its own."""
    outs = [os.path.join(folder, f"two{i}") for i in range(2)]
    both = [n.child([n.KVMTOP, "trace", str(guest.pid), "-o", out, "--for", "1", "--", *SHELL], stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for out in outs]
    said = [p.communicate(timeout=120) for p in both]
    n.same([(p.returncode, *s) for p, s in zip(both, said)], [(0, f"{out}/merged\n", "") for out in outs], "two at once")
    n.ok(all(" kvm_pio: " in read(out, "merged") for out in outs), "two at once: both have the guest's exits")
    n.same(ours(), [], "two at once: nothing is left")


def by_hand(guest, folder):
    """Without a way into the guest: a script for it, and the merge to be made."""
    out = os.path.join(folder, "hand")
    p = started(out, guest.pid, "--for", 2)
    with open(out + "/guest.sh", encoding="ascii") as script, open(folder + "/mine", "w", encoding="utf-8") as to:
        text = script.read().replace("sleep 2", "sleep 0.3")
        n.same(subprocess.run(["sh"], input=text, stdout=to, text=True, timeout=60, check=False).returncode, 0,
               "the script runs by itself")
    said, err = p.communicate(timeout=120)
    n.same(p.returncode, 0, "without a command")
    n.ok(f"sh < {out}/guest.sh" in err, "what to do in the guest is said", err)
    words = said.split()
    n.same(words[:4], ["kvmtop", "merge", "-H", f"{out}/host"], "and how to merge")
    words = [w.replace("GUEST_TRACE", folder + "/mine") for w in words]
    merged = n.run(*words[1:])
    n.same((merged.returncode, merged.stderr), (0, ""), "which works")
    n.same(ours(), [], "no instance is left, neither of the guest's half")


def ended_early(guest, folder):
    for what, number in (("interrupted", signal.SIGINT), ("told to end", signal.SIGTERM)):
        out = os.path.join(folder, what.split()[0])
        p = started(out, guest.pid, "--for", 60)
        p.send_signal(number)
        _, err = p.communicate(timeout=60)
        n.same(p.returncode, 0, f"{what}: it ends in order")
        n.ok(os.path.exists(out + "/offsets"), f"{what}: what was traced is kept")
        n.same(ours(), [], f"{what}: no instance is left")
    p = started(os.path.join(folder, "killed"), guest.pid, "--for", 60)
    p.kill()
    p.wait()
    n.same(len(ours()), 2, "killed: its instances stay")
    trace("nosuch", "--for", 1)
    r = trace(guest.pid, "-o", os.path.join(folder, "next"), "--for", 0.5, "--", *SHELL)
    n.same((r.returncode, r.stderr), (0, ""), "another trace")
    n.same(ours(), [], "took them away")
    p = started(os.path.join(folder, "looked"), guest.pid, "--for", 60)
    host = next(x for x in ours() if x.endswith("-host"))
    with open(f"{INSTANCES}/{host}/trace_pipe", "rb", buffering=0):
        p.send_signal(signal.SIGINT)
        time.sleep(0.5)
    p.communicate(timeout=60)
    n.same(ours(), [], "one that somebody looked into at the end is taken away as well")


def hostile(folder):
    """Names and paths are words of the commands that are shown, whatever is in them."""
    name, path = "x'; touch PWNED; '", folder + "/e\x1b[31m'; touch PWNED; '"
    guest = n.Guest("-r", 300, "out:inf", program=n.posing_as("qemu-system-x86_64"), tail=("-name", "guest=" + name))
    guest.go()
    p = started(path, guest.pid, "--for", 0.2)
    said, err = p.communicate(timeout=120)
    guest.kill()
    n.same((p.returncode, "\x1b" in said + err), (0, False), "a folder's name is shown without what a terminal acts on")
    words = subprocess.run(["sh", "-c", 'kvmtop() { printf "%s\\n" "$@"; }\n' + said], cwd=folder, capture_output=True,
                           text=True, timeout=60, check=False).stdout.splitlines()
    n.ok(f"{name}=GUEST_TRACE" in words, "the VM's name is one word of the command to merge", said)
    script = next(x for x in err.split(": ") if x.startswith("sh < "))
    subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, timeout=60, check=False)
    n.ok(not os.path.exists(folder + "/PWNED"), "and no shell runs any of it", said + err)


def ended_at_once(guest, folder):
    """Told to end while it still makes what it needs."""
    for i in range(3):
        p = n.child([n.KVMTOP, "trace", str(guest.pid), "--for", "60", "-o", f"{folder}/once{i}"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end and p.poll() is None and not os.path.exists(f"{INSTANCES}/kvmtop-{p.pid}-host"):
            time.sleep(0.001)
        p.send_signal(signal.SIGTERM)
        n.ok(p.wait(60) in (0, 1), "ended as it begins: in order", p.returncode)
        n.same(ours(), [], "ended as it begins: no instance is left")


def deaf(guest, folder):
    """The guest's command does not end when it is told to."""
    ready = folder + "/deaf"
    p = n.child([n.KVMTOP, "trace", str(guest.pid), "-o", folder + "/d", "--for", "60", "--", "sh", "-c",
                 f"trap '' TERM INT HUP; : > {ready}; while :; do sleep 0.1; done"], stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while time.monotonic() < end and not os.path.exists(ready):
        time.sleep(0.05)
    while time.monotonic() < end and p.poll() is None:
        p.send_signal(signal.SIGTERM)
        time.sleep(0.1)
    n.ok(p.returncode == 1 and "signal 9" in p.stderr.read(), "a guest's command that does not end is ended",
         p.returncode)
    n.same(ours(), [], "no instance is left")


def unmerged(guest, folder):
    """The guest's half has another clock."""
    with open(folder + "/clock", "w", encoding="ascii") as f:
        f.write("# tracer: nop\n" + "          sh-1     [000] d..2.    10.000001: sched_waking: comm=x pid=2 prio=120 "
                "target_cpu=000\n" * 3)
    out = folder + "/unmerged"
    r = trace(guest.pid, "-o", out, "--for", 0.2, "--", "sh", "-c", f"cat {folder}/clock")
    n.ok(r.returncode == 1 and "could not be merged" in r.stderr, "what cannot be merged is said", r.stderr)
    n.same(sorted(os.listdir(out)), ["epochs", "guest", "host", "offsets"], "and leaves no empty merge")


def refused(guest, folder):
    def no(name, word, *args):
        r = trace(*args)
        n.ok(r.returncode == (2 if not args else 1) and word in r.stderr and r.stderr.count("\n") >= 1, name,
             (r.returncode, r.stderr))

    no("no VM named", "give the VM")
    no("no such VM", "no VM of this name", "nosuch")
    no("a folder that is there", "give another folder", guest.pid, "-o", folder)
    no("a command that fails", "ended with status 1", guest.pid, "-o", folder + "/f1", "--for", 0.2, "--", "false")
    no("a command that prints nothing", "printed no trace", guest.pid, "-o", folder + "/f2", "--for", 0.2, "--", "true")
    no("a command that is not there", "No such file", guest.pid, "-o", folder + "/f3", "--for", 0.2, "--", "/nosuch")
    r = trace(guest.pid, "--for", "0")
    n.ok(r.returncode == 2 and "give 0.1 to 3600" in r.stderr, "a time that is none", r.stderr)
    r = trace(guest.pid, "-o", folder + "/f4", "--for", 0.2, "--", "sh", "-c", "kill -9 $$")
    n.ok(r.returncode == 1 and "ended by signal 9" in r.stderr, "a way into the guest that is cut off is said", r.stderr)
    r = trace("ev\x1b[31mil")
    n.ok("\x1b" not in r.stderr, "names are escaped", r.stderr)
    n.same(ours(), [], "no instance is left of those")


def without_tracefs(guest, folder):
    """The last: it is not mounted again."""
    n.unmount(n.TRACEFS)
    n.unmount(n.DEBUGFS)  # which mounts one by itself
    r = trace(guest.pid, "-o", folder + "/none", "--for", 0.2, "--", *SHELL)
    n.ok(r.returncode == 1 and "mount -t tracefs tracefs /sys/kernel/tracing" in r.stderr, "without tracefs: how to mount it",
         r.stderr)
    n.ok(not os.path.exists(folder + "/none"), "and no folder is made")


def main():
    guest = n.Guest("-r", 300, "out:inf")
    guest.go()
    with tempfile.TemporaryDirectory() as folder:
        whole(guest, folder)
        by_hand(guest, folder)
        ended_early(guest, folder)
        ended_at_once(guest, folder)
        deaf(guest, folder)
        unmerged(guest, folder)
        hostile(folder)
        refused(guest, folder)
        without_tracefs(guest, folder)
    guest.kill()
    n.done()


main()
