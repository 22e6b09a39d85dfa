#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# limit: 120
# beside: yes
"""kvmtop merge: texts whose order is known, and a real guest's readings of its TSC in a real host's trace."""

import contextlib
import lzma
import os
import pty
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import lab_placed  # noqa: E402
import native as n  # noqa: E402

TMP = os.environ.get("TEST_TMP", "/tmp")
TSC_RUN = os.path.join(n.BUILD, "guests/tsc-run")
WRAP = 1 << 64


def path(name):
    return os.path.join(TMP, name)


def write(name, text):
    with open(path(name), "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    return path(name)


def line(ts, event, cpu=0, task="CPU 0/KVM", pid=77):
    return f"{task:>16}-{pid:<7} [{cpu:03d}] d..1. {ts}: {event}\n"


def epoch(ts, vcpu, prev, new, pid=77):
    return line(ts, f"kvm_write_tsc_offset: vcpu={vcpu} prev={prev % WRAP} next={new % WRAP}", pid=pid)


def merge(*args, stdin=None):
    return n.run("merge", *args, limit=300, text=False, **({} if stdin is None else {"input": stdin}))


def shown(r):
    """[(prefix, time stamp, event)] of the lines that are events."""
    rows = []
    for text in r.stdout.decode(errors="replace").splitlines():
        m = re.match(r"(\S+) +.*\[\d+\] +(?:\S+ +|\S{4})?(\d+): (.*)", text)
        if m and text[0] != "#":
            rows.append((m[1], int(m[2]), m[3]))
    return rows


def notes(r):
    return [x for x in r.stdout.decode().splitlines() if x.startswith("# ") and "]: " in x]


def order(r):
    return " ".join(x[2].split(":")[0] for x in shown(r))


def one_offset():
    """The recipe's own form: no blanks before the time stamp. 49836825726903 + 713253499428."""
    host = write("host", "".join(f"qemu-kvm-2687 [003] d...{ts}: {what}: [detail]\n" for ts, what in (
        (50550079203669, "kvm_exit"), (50550079206816, "kvm_entry"), (50550079240656, "kvm_exit"),
        (50550079268391, "kvm_entry"), (50550079280829, "kvm_exit"))))
    guest = write("guest", "comm-3826 [000] d.h.49836825726903: sched_wakeup: [detail]\n"
                           "comm-3826 [000] d...49836825779838: sched_switch: [detail]")
    for value in ("-713253499428", str(WRAP - 713253499428), hex(WRAP - 713253499428), "vcpu0:-713253499428"):
        r = merge("-H", host, "-G", guest, "--offset", value)
        n.same(order(r), "kvm_exit kvm_entry sched_wakeup kvm_exit kvm_entry sched_switch kvm_exit",
               f"one offset, {value}: the order")
    n.same([x for x in shown(r) if x[0] == "g"],
           [("g", 50550079226331, "sched_wakeup: [detail]"), ("g", 50550079279266, "sched_switch: [detail]")],
           "one offset: the guest's lines have the host's TSC")
    n.ok(b"g comm-3826 [000] d.h.50550079226331: sched_wakeup: [detail]\n" in r.stdout,
         "one offset: the rest of the line is as it was", r.stdout)
    r = merge("-H", host, "-G", guest)
    n.ok(r.returncode == 1 and b"--offset" in r.stderr, "no offset: refused, with the way out", r.stderr)
    r = merge("-H", host, "-G", guest, "--offset", "18446739773557710924")
    n.ok(shown(r)[-2][1] == 54136977567595 and b"none of its 2 lines" in r.stderr,
         "an offset that puts all of the guest elsewhere: said", r.stderr)


def changes():
    host = write("host", line(1000, "a") + epoch(2000, 0, -500, 9500) + line(3000, "b") + epoch(4000, 0, 9500, 4500) +
                 line(5000, "c"))
    # Guest stamps: at host 1500 offset -500, at 2500 offset 9500, at 4500 and 4600 offset 4500.
    guest = write("guest", line(1000, "g1") + line(12000, "g2") + line(9000, "g3") + line(9100, "g4"))
    r = merge("-H", host, "-G", guest)
    n.same([(x[1], x[2]) for x in shown(r) if x[0] == "g"], [(1500, "g1"), (2500, "g2"), (4500, "g3"), (4600, "g4")],
           "the offset changes twice: each line by the one in force")
    n.same(order(r).replace("kvm_write_tsc_offset", "w"), "a g1 w g2 b w g3 g4 c", "the offset changes twice: the order")
    n.ok(any("set back at 4000" in x for x in notes(r)), "a step back of the guest's TSC is said", r.stdout.decode())
    host = write("host", line(1000, "a") + epoch(2000, 0, 0, 100) + line(2100, "x") + epoch(3000, 0, 300, 400) + line(5000, "c"))
    guest = write("guest", line(2250, "g1") + line(3650, "g2"))
    r = merge("-H", host, "-G", guest)
    n.ok(any("missing from the host's trace" in x for x in notes(r)), "a write that is missing is said at its place",
         r.stdout.decode())
    host = write("host", line(1000, "a") + line(9000, "c"))
    guest = write("guest", line(2000, "g1") + line(1500, "g2") + line(2500, "g3"))
    r = merge("-H", host, "-G", guest, "--offset", "0")
    got = r.stdout.decode().splitlines()
    at = [i for i, x in enumerate(got) if "step back by 500 cycles and no change" in x]
    n.ok(len(at) == 1 and "g2" in got[at[0] + 1], "the guest wrote its TSC and no epoch is known: said there", got)
    n.same(order(r), "a g1 g2 g3 c", "the guest wrote its TSC: its own order stays")
    host = write("host", line(1000, "a") + line(900, "b") + line(9000, "c"))
    got = merge("-H", host, "-G", guest, "--offset", "0").stdout.decode().splitlines()
    at = [i for i, x in enumerate(got) if "host's TSC steps back by 100 cycles" in x]
    n.ok(len(at) == 1 and " b" in got[at[0] + 1], "the host's TSC steps back: said there", got)


def set_back():
    """
    A ring buffer has differences of time from one line to the next, and none below 0; each page of it begins with the
    time itself. Set back at 2000, the guest's lines of 2050, 2150 and 2300 are on the page of those before.
    """
    host = write("host", line(1000, "a") + epoch(2000, 0, 10000, 5000) + epoch(2010, 0, 5000, 5000) + line(2200, "b") +
                 line(9000, "c"))
    before = line(11500, "g1") + line(11900, "g2")
    for name, stamps, places in (("as much later", (11900, 12000, 12150), (2000, 2100, 2250)),
                                 ("at once", (11900, 11900, 11900), (2000, 2000, 2000))):
        late = "".join(line(ts, f"g{3 + i}") for i, ts in enumerate(stamps))
        r = merge("-H", host, "-G", write("guest", before + late + line(7600, "g6")))
        n.same([x[1:] for x in shown(r) if x[0] == "g"],
               [(1500, "g1"), (1900, "g2"), *((ts, f"g{3 + i}") for i, ts in enumerate(places)), (2600, "g6")],
               f"a TSC that is set back: lines that still have the time before are behind it, {name}")
        got = r.stdout.decode().splitlines()
        at = [i for i, x in enumerate(got) if x in notes(r)]
        n.same([(got[i].split("]: ")[1][:36], got[i + 1].split()[-1]) for i in at],
               [("the guest's TSC was set back at 2000", "g3"), ("the guest's TSC was set back at 2000", "g6")],
               f"and it is said where they begin and end, {name}")
        n.ok("# g [000] is vCPU 0: offset 10000, 5000 from 2000 on\n" in r.stdout.decode(),
             f"its offsets are those that it had, a write that changes nothing is none, {name}", got)


def set_back_after_a_rest():
    """The same of a CPU that was idle before it: its last line is long before the step."""
    step = 10 ** 12
    host = write("host", line(1000, "a") + epoch(step, 0, 5 * 10 ** 12, 10 ** 12) + line(2 * step, "c"))
    guest = "".join(line(5 * 10 ** 12 + ts, name) for ts, name in ((1500, "g1"), (1900, "g2"), (1900, "g3"), (2100, "g4")))
    r = merge("-H", host, "-G", write("guest", guest + line(10 ** 12 + step + 900, "g5")))
    n.same([x[1:] for x in shown(r) if x[0] == "g"], [(1500, "g1"), (1900, "g2"), (step, "g3"), (step + 200, "g4"), (step + 900, "g5")],
           "a TSC that is set back after a rest: lines that still have the time before are behind it")
    many = "".join(line(5 * 10 ** 12 + 3000 + 10 * i, "x") for i in range(300))
    r = merge("-H", host, "-G", write("guest", guest + many + line(10 ** 12 + step + 900, "g5")))
    n.same([x[1] for x in shown(r) if x[2] in ("g3", "g4")], [1900, 2100], "more lines than a page has: two that are equal are no sign")


def vcpus_and_guests():
    host = write("host", epoch(100, 0, 0, 1000, 70) + epoch(110, 1, 0, -50, 71) + epoch(120, 0, 0, 1000000, 80) +
                 line(200, "a") + line(300, "b") + line(400, "c"))
    # vCPU 0 at 250, vCPU 1 at 240 and 350; the kernel has sorted them by the guest's own stamps.
    one = write("one", line(190, "v1", 1) + line(300, "v1", 1) + line(1250, "v0", 0))
    two = write("two", line(1000310, "w0"))
    r = merge("-H", host, "-G", f"web 01={one}", "--offset", "vcpu0:1000", "-G", f"db={two}", "--offset", "1000000")
    n.same([x[1:] for x in shown(r)][3:], [(200, "a"), (240, "v1"), (250, "v0"), (300, "b"), (310, "w0"), (350, "v1"),
                                           (400, "c")],
           "two guests, vCPUs of different offsets, one VM's writes from another's")
    n.ok(b"web 01  " in r.stdout and b"\ndb     " in r.stdout, "names of VMs stand before their lines", r.stdout)
    r = merge("-H", host, "-G", one, "--map", "0=1", "--map", "1=0", "--offset", "0")
    n.ok(r.returncode == 0 and b"[000] is vCPU 1" in r.stdout and b"[001] is vCPU 0" in r.stdout, "--map", r.stdout)
    silent = write("silent", line(1250, "s", 1))
    plain = write("plain", line(200, "a") + line(300, "b"))
    nothing = write("nothing", "vcpu0 1000\n")
    for args in (("--offset", "vcpu0:1000"), ("--tsc", nothing), ("--map", "1=7", "--offset", "vcpu0:1000")):
        r = merge("-H", plain, "-G", silent, *args)
        n.ok(order(r) == "a s b" and b"another vCPU's is taken: offset 1000" in r.stdout,
             f"a vCPU without an offset takes that of vCPU 0, which has no line: {args[0]}", r.stderr)
    r = merge("-H", write("host0", epoch(100, 0, 0, 1000) + line(200, "a") + line(300, "b")), "-G", silent)
    n.same(order(r), "kvm_write_tsc_offset a s b", "the same where the host's trace has it")
    table = write("table", "# made by hand\nweb vcpu0 1000\nweb vcpu1\t-50\nother vcpu0 7\n")
    host = write("host", line(200, "a") + line(300, "b") + line(400, "c"))
    r = merge("-H", host, "-G", f"web={one}", "--tsc", table)
    n.same(order(r), "a v1 v0 b v1 c", "--tsc with a table of offsets")
    trace = write("trace", epoch(10, 0, 0, 1000) + epoch(11, 1, 0, -50))
    r = merge("-H", host, "-G", f"web={one}", "--tsc", trace)
    n.same(order(r), "a v1 v0 b v1 c", "--tsc with a trace of an instance")
    host = write("host", line(1 << 40, "a") + line((1 << 40) + 4000, "b"))
    # 1.5 times the host's: floor((2^40 + 1001) * 1.5) = 1649267443225.
    guest = write("guest", line(((1 << 40) + 1001) * 3 // 2 + 7, "g"))
    r = merge("-H", host, "-G", guest, "--offset", "7", "--scaling", f"{3 << 47}:48")
    n.same(shown(r)[1], ("g", (1 << 40) + 1001, "g"), "a scaled guest")
    host = write("host", line(5, "a") + line(15, "b"))
    guest = write("guest", line(WRAP - 2, "g") + line(3, "g"))
    r = merge("-H", host, "-G", guest, "--offset", "-10")
    n.same([x[1] for x in shown(r)], [5, 8, 13, 15], "a guest whose TSC passes 2^64")


def offsets_once():
    """What gives the offsets may be a pipe, longer than one reading, and for several guests at once."""
    text = "".join(epoch(10 + 1000 * i, v, i * 100 - (100 if i else 0), i * 100, 70 + v) for i in range(200) for v in (0, 1))
    host = write("host", line(300000, "a") + line(303000, "c"))
    guests = ("-G", write("one", line(302000 + 19900, "g1")), "-G", "two=" + write("two", line(302100 + 19900, "g2", 1)))
    want = [(300000, "a"), (302000, "g1"), (302100, "g2"), (303000, "c")]
    of_file = merge("-H", host, "--tsc", write("epochs", text), *guests)
    n.same([x[1:] for x in shown(of_file)], want, "--tsc of all guests, a file")
    n.same(merge("-H", host, "--tsc", "-", *guests, stdin=text.encode()).stdout, of_file.stdout, "the same by standard input")
    r = subprocess.run(["bash", "-c", f'exec {n.KVMTOP} merge "$@" --tsc <(cat {path("epochs")}) {" ".join(guests)}', "x", "-H", host],
                       stdin=subprocess.DEVNULL, capture_output=True, check=False)
    n.same((r.stdout, r.stderr), (of_file.stdout, b""), "the same by a shell's <(command)")
    r = merge("-H", "-", "--tsc", "-", *guests, stdin=b"")
    n.ok(r.returncode == 2 and b"one file only" in r.stderr, "standard input twice: refused", r.stderr)
    table = b"vcpu0 19900\ntwo vcpu1 19900\n"
    r = merge("-H", host, "--tsc", "-", *guests, stdin=table)
    n.same([x[1:] for x in shown(r)], want, "a table for two guests by standard input")


def not_synchronised():
    """A vCPU's thread cannot be on another CPU before it left guest mode: stamps that say so are of TSCs that differ."""
    guest = write("guest", line(1500, "g"))
    moved = (line(1000, "kvm_entry: x", 3), line(1400, "kvm_exit: x", 3), line(1500, "kvm_entry: x", 1), line(1600, "kvm_exit: x", 1))
    early = (moved[0], line(1200, "kvm_entry: x", 1), line(1300, "kvm_exit: x", 1), moved[1], line(1700, "kvm_entry: x", 1))
    lost = early[:2] + ("CPU:3 [LOST 7 EVENTS]\n",) + early[2:]
    other = (moved[0], line(1200, "kvm_entry: x", 1, pid=78), line(1300, "kvm_exit: x", 1, pid=78), moved[1])
    for what, lines, said in (("a thread that moves", moved, 0), ("two threads", other, 0), ("events are lost between", lost, 0),
                              ("a thread on two CPUs at once", early, 1)):
        got = merge("-H", write("host", "".join(lines)), "-G", guest, "--offset", "0").stdout.decode().splitlines()
        at = [i for i, x in enumerate(got) if "CPUs 3 and 1 are not synchronised" in x]
        n.ok(len(at) == said and sum("synchronised" in x for x in got) == said, f"{what}: {'said' if said else 'nothing'}", got)
        n.ok(all("200 cycles" in got[i] and "1400: kvm_exit" in got[i + 1] for i in at), f"{what}: by how much, at its place", got)


def many_writes():
    """A guest that writes its TSC all the time: 2,000 offsets, each line by its own."""
    count, at = 2000, 10 ** 9
    host, guest, want, offset = [], [], [], 5 * 10 ** 12
    for i in range(count):
        new = offset + (-1) ** i * (10 ** 8 + 1000 * i)
        host.append(epoch(at + 1000 * i, 0, offset, new))
        guest.append(line(at + 1000 * i + 500 + new, f"g{i}"))
        want.append((at + 1000 * i + 500, f"g{i}"))
        offset = new
    r = merge("-H", write("host", "".join(host) + line(at + 1000 * count, "end")), "-G", write("guest", "".join(guest)))
    n.same([x[1:] for x in shown(r) if x[0] == "g"], want, f"{count} offsets in one trace")


def refusals():
    data = os.path.join(n.TOP, "tests/data/ftrace")
    host = write("host", line(1000, "a"))
    for name, words in (("kvm-6.1-svm.txt", b"echo x86-tsc > /sys/kernel/tracing/trace_clock"),
                        ("counter-6.18.txt", b"echo x86-tsc"), ("uptime-6.18.txt", b"echo x86-tsc"),
                        ("latency-6.18.txt", b"options/latency-format")):
        for args in (("-H", host, "-G", f"{data}/{name}"), ("-H", f"{data}/{name}", "-G", host)):
            r = merge(*args, "--offset", "0")
            n.ok(r.returncode == 1 and words in r.stderr and not r.stdout and r.stderr.count(b"\n") == 1,
                 f"{args[0 if name in args[1] else 2]} {name}: refused, with the command that mends it", r.stderr)
    r = merge("-H", host, "-G", os.path.join(n.TOP, "LICENSE"), "--offset", "0")
    n.ok(r.returncode == 1 and b"no text of ftrace" in r.stderr, "a file that is no trace", r.stderr)
    for args, words in (((), b"-H HOST"), (("-H", host), b"-H HOST"), (("-H", host, "-G", "-", "-G", "b=-"), b"one file"),
                        (("-H", "/nonexistent", "-G", host), b"No such file"),
                        (("-H", "/usr", "-G", host), b"/usr: a folder, not a trace"),
                        (("-H", host, "-G", host, "--offset", "x"), b"--offset 'x'"),
                        (("-H", host, "-G", host, "--map", "1-2"), b"--map"),
                        (("-H", host, "-G", host, "--scaling", "5:64"), b"--scaling"),
                        (("-H", host, "-G", host, "-G", host), b"one name")):
        r = merge(*args)
        n.ok(r.returncode in (1, 2) and words in r.stderr and r.stderr.count(b"\n") == 1, f"merge {' '.join(args)[:40]}: refused",
             r.stderr)


def forms():
    data = os.path.join(n.TOP, "tests/data/ftrace")
    for name in ("tsc-6.18.txt", "tsc-6.18-tgid.txt", "tsc-6.18-noirq.txt", "tsc-6.18-stack.txt", "tsc-6.18-lost.txt",
                 "tsc-trace-cmd.txt"):
        with open(f"{data}/{name}", "rb") as f:
            text = f.read()
        plain = [b"h " + x for x in text.splitlines() if x and x[:1] != b"#" and not x.startswith(b"cpus=")]
        guest = write("guest", b"")
        r = merge("-H", f"{data}/{name}", "-G", guest, "--offset", "0")
        got = [x for x in r.stdout.splitlines() if x[:1] != b"#"]
        n.same(got, plain, f"{name}: all of its lines, as they were")
        crlf = write("crlf", text.replace(b"\n", b"\r\n")[:-2])
        n.same(merge("-H", crlf, "-G", guest, "--offset", "0").stdout, r.stdout, f"{name} with CRLF and no last line end")
        n.same(merge("-H", "-", "-G", guest, "--offset", "0", stdin=text).stdout, r.stdout, f"{name} by a pipe")


def terminal():
    host = write("host", line(1000, "a: \x1b[31mred\x07 \\ end", task="e\x1b]0;x"))
    guest = write("guest", line(2000, "g"))
    main, other = pty.openpty()
    p = n.child([n.KVMTOP, "merge", "-H", host, "-G", f"\x1b[1mweb={guest}", "--offset", "0"], stdout=other,
                stdin=subprocess.DEVNULL)
    p.wait()
    os.close(other)
    got = os.read(main, 65536)
    n.ok(b"\x1b" not in got and b"\x07" not in got and b"\\e[31mred\\x07" in got, "a terminal gets escapes, not controls", got)
    r = merge("-H", host, "-G", guest, "--offset", "0")
    n.ok(b"\x1b[31mred\x07 \\ end" in r.stdout, "a file gets the lines as they were", r.stdout)
    p = subprocess.run(f"{n.KVMTOP} merge -H {host} -G {guest} --offset 0 > /dev/full", shell=True, capture_output=True,
                       check=False)
    n.ok(p.returncode == 1 and b"cannot write what was merged: No space" in p.stderr, "a full disk is said", p.stderr)


def long_inputs():
    base, count = 10 ** 12, 60000
    host = write("host", "".join(line(base + i * 1000, "kvm_exit: x", i % 4) for i in range(count)))
    guest = write("guest", "".join(line(base + i * 1000 + 500 - 10 ** 9, "ev: x", i % 2) for i in range(count)))
    for args, what in ((("--offset", "-1000000000"), "one offset"),
                       (("--offset", "vcpu0:-1000000000", "--offset", "vcpu1:-1000000400"), "two offsets")):
        r = merge("-H", host, "-G", guest, *args)
        stamps = [x[1] for x in shown(r)]
        n.ok(len(stamps) == 2 * count and stamps == sorted(stamps), f"{2 * count} lines, {what}: complete and in order",
             (len(stamps), r.stderr))


# --- guests that are real ---
class Recorded:
    """As lab_placed.py asks of a guest."""

    name, ncpus = "web01", 2

    @staticmethod
    def vcpu_tids():
        return {0: 141, 1: 142}


def recorded_guest():
    """A QEMU guest's own trace beside its host's, recorded in the lab (tsc_merged.py makes such ones and judges them so)."""
    data = os.path.join(n.TOP, "tests/data/ftrace/guest-tsc-6.1-svm")
    paths = []
    for what in ("host", "guest"):
        with lzma.open(f"{data}.{what}.txt.xz") as f:
            paths.append(write(f"recorded-{what}", f.read()))
    offset = 18446744007650125026
    r = merge("-H", paths[0], "-G", f"web01={paths[1]}", "--offset", f"vcpu1:{offset}")
    placed = lab_placed.Placed(r.stdout.decode(), [Recorded])
    placed.check("a recorded guest")
    values = lab_placed.in_the_middle(placed, Recorded, "a recorded guest that sets its TSC back", -lab_placed.CYCLES)
    n.same([v % WRAP for v in values], [18446744009745624560, 18446744007580725566], "a recorded guest: vCPU 0's offsets are those of the writes")
    n.ok(not any("synchronised" in x for x in placed.notes), "a recorded guest: the host's CPUs are synchronised", placed.notes)


# --- a real guest ---------------------------------------------------------------------------------
@contextlib.contextmanager
def traced(events, kb):
    """The host traces these events of KVM meanwhile, by its TSC, kb a CPU: a list that has the text in the end."""
    at, text = f"{n.TRACEFS}/instances/kvmtop-test-{os.getpid()}", []
    os.mkdir(at)
    try:
        for name, value in (("trace_clock", "x86-tsc"), ("buffer_size_kb", str(kb)),
                            *((f"events/kvm/{e}/enable", "1") for e in events)):
            with open(f"{at}/{name}", "w", encoding="ascii") as f:
                f.write(value)
        yield text
        with open(f"{at}/tracing_on", "w", encoding="ascii") as f:
            f.write("0")
        with open(f"{at}/trace", "rb") as f:
            text.append(f.read())
    finally:
        os.rmdir(at)


def record(*args):
    """The host's trace while tsc-run ran, and what its guest read."""
    with traced(("kvm_write_tsc_offset", "kvm_msr", "kvm_pio", "kvm_userspace_exit"), 4096) as host:
        p = n.child([TSC_RUN, *map(str, args)], stdout=subprocess.PIPE)
        guest = p.communicate(timeout=60)[0]
    return host[0], guest


def offset_is_taken(host):
    """Does this KVM give its guests the offset that it traces? Software ones may let them read the host's TSC."""
    m = re.search(rb"(\d+): kvm_msr: msr_read 10 = 0x([0-9a-f]+)", host)
    return m and abs(int(m[1]) - int(m[2], 16)) > 10 ** 8


def answered(text):
    """[(from, to)] in which the host answered a guest's RDMSR of its TSC: the thread's event before, and kvm_msr."""
    spans, last = [], {}
    for row in text.splitlines():
        m = re.match(r"h .*-(\d+) +\[\d+\] \S+ +(\d+): (kvm_\w+):(.*)", row)
        if not m:
            continue
        if m[3] == "kvm_msr" and "msr_read 10 " in m[4]:
            spans.append((last.get(m[1], 0), int(m[2])))
        last[m[1]] = int(m[2])
    return spans


def real_guest(name, args, readings):
    host, guest = record(*args)
    if b"msr_read 10 =" not in host:
        n.skip(name, "needs:kvm-exits this KVM shows no kvm_msr")
        return
    taken = offset_is_taken(host)
    r = merge("-H", write("host", host), "-G", write("guest", guest), *(() if taken else ("--offset", "0")))
    stamps = sorted(ts for prefix, ts, _ in shown(r) if prefix == "g")
    spans = answered(r.stdout.decode(errors="replace"))
    outside = [ts for ts in stamps if not any(a <= ts <= b for a, b in spans)]
    n.ok(r.returncode == 0 and len(stamps) == readings and not outside,
         f"{name}: all {readings} readings lie where the host answered them "
         f"({'offsets of the trace' if taken else 'this KVM gives no offset'})",
         (len(stamps), len(spans), outside[:5], r.stderr, notes(r)))


def running_vm():
    """A guest of the name of a VM that runs: its offsets are those in debugfs."""
    g = n.Guest("-c", 2, "-i", "0,4", "out:5 sleep:20000", tail=("-name", "guest=merge-me,debug-threads=on"),
                program=n.posing_as("qemu-system-x86_64")).go()
    found = [d for d in os.listdir(f"{n.DEBUGFS}/kvm") if os.path.isdir(f"{n.DEBUGFS}/kvm/{d}/vcpu4")
             and d.split("-")[0] == str(g.pid)] if os.path.isdir(f"{n.DEBUGFS}/kvm") else []
    if not found:
        n.skip("a VM that runs", "needs:debugfs it has no folder there")
        return
    with open(f"{n.DEBUGFS}/kvm/{found[0]}/vcpu4/tsc-offset", encoding="ascii") as f:
        offset = int(f.read())
    host = write("host", line(10 ** 15, "a"))
    guest = write("guest", line((10 ** 15 + 5 + offset) % WRAP, "g", 1))
    r = merge("-H", host, "-G", f"merge-me={guest}")
    n.ok(f"# merge-me [001] is vCPU 4: offset {offset}\n" in r.stdout.decode() and shown(r)[-1][1] == 10 ** 15 + 5,
         "a VM that runs: its offset and its vCPUs' numbers are those in debugfs", (r.stdout, r.stderr))
    r = merge("-H", host, "-G", f"merge-me={guest}", "--offset", str(offset - 1), "--map", "1=0")
    n.ok(f"# merge-me [001] is vCPU 0: offset {offset - 1}\n" in r.stdout.decode(), "a VM that runs: what is given counts more",
         (r.stdout, r.stderr))
    r = merge("-H", host, "-G", f"no-such={guest}")
    n.ok(r.returncode == 1 and b"not known" in r.stderr, "a VM that does not run: refused", r.stderr)
    g.kill()


def main():
    one_offset()
    changes()
    set_back()
    set_back_after_a_rest()
    vcpus_and_guests()
    offsets_once()
    not_synchronised()
    many_writes()
    refusals()
    forms()
    terminal()
    long_inputs()
    recorded_guest()
    if os.geteuid() == 0 and os.access("/dev/kvm", os.W_OK) and os.path.isdir(f"{n.TRACEFS}/instances"):
        running_vm()
        real_guest("a real guest", (1, 200, 0, 0), 200)
        real_guest("a real guest, two vCPUs of different TSCs", (2, 200, 5 * 10 ** 12, 0), 400)
        real_guest("a real guest that writes its TSC", (2, 200, 0, 10 ** 12), 400)
    else:
        n.skip("a real guest", "needs:kvm needs:tracefs needs:root")
    n.done()


if __name__ == "__main__":
    main()
