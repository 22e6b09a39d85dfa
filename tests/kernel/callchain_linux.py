#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 240
"""In the lab on the patched kernel (kernel-support/boot.sh): call chains of a Linux guest in QEMU, and kvmtop's callers.

The guest's kernel has frame pointers (config/lab.config), and its text is here to look at: what stands before an
address to which a function returns is a call, and where that names its target, the target is the function that was
called. Its load duplicates and closes a descriptor, by two system calls.
"""

import bisect
import collections
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..")]
import callchain as c  # noqa: E402
import lab_guests  # noqa: E402
import native as n  # noqa: E402

KALLSYMS = os.path.join(c.TMP, "kallsyms")
LOAD, SYSTEM_CALLS = "lock", {"__x64_sys_dup", "__x64_sys_close"}
CHAINS = 200  # wanted
PATCHED_CALLS = ("__SCT__", "__x86_indirect")  # what stands there instead when the kernel runs


class Kernel:
    """A vmlinux: its functions, and the calls in them."""

    def __init__(self, path):
        at = [line.split() for line in n.sh("nm", "-n", path).splitlines()]
        at = [(int(w[0], 16), w[2]) for w in at if len(w) == 3 and w[1] in "tTwW"]
        self.address = {name: where for where, name in at}
        self.first, self.end = self.address["_stext"], self.address["_etext"]
        self.functions = [(where, name) for where, name in at if self.first <= where < self.end]
        self.starts = [where for where, _name in self.functions]
        self.text = self.read_text(path)

    def read_text(self, path):
        with open(path, "rb") as f:
            header = f.read(64)
            where, = struct.unpack_from("<Q", header, 32)
            size, count = struct.unpack_from("<HH", header, 54)
            f.seek(where)
            for _ in range(count):
                kind, _flags, offset, address, _physical, length = struct.unpack_from("<IIQQQQ", f.read(size))
                if kind == 1 and address <= self.first and self.end <= address + length:
                    f.seek(offset + self.first - address)
                    return f.read(self.end - self.first)
        raise RuntimeError(f"{path} has no text")

    def write_kallsyms(self, path):
        with open(path, "w", encoding="ascii") as f:
            f.writelines(f"{where:016x} T {name}\n" for where, name in [*self.functions, (self.end, "_etext")])

    def function(self, at):
        """Where an address is; of a function's unlikely part: the function."""
        i = bisect.bisect_right(self.starts, at) - 1
        return self.functions[i][1].partition(".cold")[0] if i >= 0 and at < self.end else hex(at)

    def enters(self, at):
        """Among the few lines of assembler in which the kernel's registers are partly the program's still."""
        return self.address["__entry_text_start"] <= at < self.address["__entry_text_end"]

    def called(self, ret):
        """The function that the call before an address calls; "": by a pointer; None: no call stands there."""
        i = ret - self.first
        if not 7 <= i <= len(self.text):
            return None
        if self.text[i - 5] == 0xe8:
            target = ret + struct.unpack_from("<i", self.text, i - 4)[0]
            j = bisect.bisect_left(self.starts, target)
            if self.starts[j:j + 1] == [target]:
                name = self.function(target)
                return "" if name.startswith(PATCHED_CALLS) else name
        return "" if any(self.text[i - k] == 0xff and self.text[i - k + 1] & 0x38 == 0x10 for k in (2, 3, 4, 6, 7)) else None

    def names(self, chain):
        """Of the addresses behind the mark. Where a function returns to may be the next one's begin: it calls at its end."""
        return [self.function(chain[1]), *(self.function(at - 1) for at in chain[2:])]

    def right(self, chain):
        """Whether each of its functions calls the one before; the first may have no frame of its own yet."""
        names, calls = self.names(chain), [self.called(at) for at in chain[2:]]
        return None not in calls and all(call in ("", name) for call, name in zip(calls[1:], names[1:]))


def kernel_chains(guest, kernel):
    """Those of samples of the guest's kernel that have callers."""
    found = []
    for _ in range(10):
        c.record([guest.pid])
        found += [chain for mark, chain in c.chains([guest.pid])[guest.pid]
                  if mark == c.GUEST_KERNEL and len(chain) > 2 and not kernel.enters(chain[1])]
        if len(found) >= CHAINS:
            break
    return found


def check_chains(kernel, chains):
    n.ok(len(chains) >= CHAINS, "samples of the guest's kernel have callers", len(chains))
    n.same({chain[0] for chain in chains}, {c.GUEST_KERNEL}, "behind the mark of its mode")
    wrong = [kernel.names(chain) for chain in chains if not kernel.right(chain)]
    n.say(f"{len(chains)} chains, of {sum(map(len, chains)) / len(chains):.1f} words; of {len(wrong)} a caller does not call")
    n.ok(len(wrong) <= len(chains) / 20, "each function in a chain calls the one before it", wrong[:5])
    names = [kernel.names(chain) for chain in chains]
    up = [x for x in names if x[-2:] == ["do_syscall_64", "entry_SYSCALL_64_after_hwframe"]]
    n.ok(len(up) >= len(chains) / 4, "chains go up to where the kernel was entered", (len(up), names[:5]))
    load = [x for x in up if SYSTEM_CALLS & set(x)]
    n.ok(len(load) >= len(up) / 2, "and most of these by the system calls of the guest's load",
         collections.Counter(x[-3] for x in up if len(x) > 2))


def by_symbol(rows):
    """{symbol: {caller: samples}} of kvmtop's rows."""
    found = collections.defaultdict(collections.Counter)
    for x in rows:
        for y in x["callers"]:
            found[x["symbol"]][y["symbol"]] += y["samples"]
    return found


def kernel_rows(record, guest):
    return [x for vm in n.vms_of(record, guest.pid) for x in vm["symbols"]
            if x["domain"] == "guest-kernel" and not x["reason"] and x.get("callers")]


def check_kvmtop(guest, kernel, chains):
    """Its callers of the symbol of which both it and perf have most samples."""
    theirs = collections.defaultdict(collections.Counter)
    for chain in chains:
        callee, caller, *_rest = kernel.names(chain)
        theirs[callee][caller] += 1
    kernel.write_kallsyms(KALLSYMS)
    top = n.Kvmtop("--max-overhead", "0", "--guestkallsyms", f"web01={KALLSYMS}", delay=1)
    found = top.until(lambda r: kernel_rows(r, guest), 60, "kvmtop: symbols of the guest have callers")
    if found:
        n.ok(found, "kvmtop: symbols of the guest have callers")
        first = len(top.records)
        top.skip(8)
        mine = by_symbol(x for r in top.records[first:] for x in kernel_rows(r, guest))
        both = max(mine.keys() & theirs.keys(), key=lambda s: min(mine[s].total(), theirs[s].total()), default=None)
        n.say(f"{both}: kvmtop {dict(mine[both])}, perf {dict(theirs[both])}")
        n.ok(both and mine[both].most_common(1)[0][0] in theirs[both], "the most frequent one is one of perf's",
             (mine, theirs))
    top.end()


def main():
    if why := lab_guests.missing():
        n.skip("call chains of a Linux guest", why)
        n.done()
    kernel = Kernel(os.environ["LAB_KERNEL"])
    guest = lab_guests.start(("web01",))[0].ready()
    guest.load(LOAD)
    chains = kernel_chains(guest, kernel)
    check_chains(kernel, chains)
    check_kvmtop(guest, kernel, chains)
    guest.rest()
    n.done()


main()
