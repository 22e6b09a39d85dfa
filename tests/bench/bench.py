#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""make bench: every figure that kvmtop must hold, beside its peers measured in the same run.

bench.py [PART…], parts: events model counts slowdown own tree threads whole discovery symbols merge report
recorder week kills lab. Figures are CPU time of the process
named, not wall time, wherever that is the question, and programs that are compared take turns: other
load on the machine then hits both. A bound that is missed says MISSED; the exit status is 1 only when a
part could not be measured. Where there is no /dev/kvm the parts that watch guests of this machine are not
measured; the guests of part lab are the emulated host's.
"""

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import procs  # noqa: E402  (makes our mount namespace)
from rows import Row, from_json, header, line  # noqa: E402
import native  # noqa: E402
import perfdata_lib  # noqa: E402
from traces import merge  # noqa: E402

VMS, VCPUS = 1000, 16
REAL_VMS = int(os.environ.get("BENCH_VMS", "0"))  # 0: as many as this machine carries
PROCESSES = 2000
WRITES = 60000
LIMIT = 3600  # seconds for all of it
KINDS = "kvm:kvm_pio,kvm:kvm_userspace_exit"
HOST_CSV = ["--batch", "--format", "csv", "--table", "host", "--fields", "nvm"]
noise = []


def calibrate():
    """The same work again and again: what the machine itself varies."""
    data, start = bytes(1 << 20), time.process_time()
    for _ in range(40):
        hashlib.sha256(data)
    noise.append((time.process_time() - start) * 1000)


def program(name, *args):
    out = subprocess.run([os.path.join(native.BUILD, "bench", name), *args], capture_output=True, text=True,
                         check=False)
    if out.returncode:
        raise RuntimeError(f"{name}: {out.stderr.strip()}")
    return from_json(out.stdout)


def events():
    return program("bench_events")


def model():
    return program("bench_model")


def counts():
    return program("bench_counts")


# --- the guest's slow-down ----------------------------------------------------------------------
def watched_by(who):
    """Starts the watcher and waits until it counts; None: nobody."""
    pin = ["taskset", "-c", str(native.CPUS[0])]
    if who in ("bpf", "events"):
        source = {"bpf": "bpf", "events": "perf"}[who]
        p = native.child([*pin, native.KVMTOP, *HOST_CSV, "--event", "ioport,userexit", "--max-overhead", "0",
                          "--events-by", source],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        p.stdout.readline()
        p.stdout.readline()  # the header, then the first interval
        return p
    if who == "perf":
        p = native.child([*pin, "perf", "record", "-a", "-o", "/dev/null", "-e", KINDS],
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        time.sleep(1)
        return p
    return None


def one_guest(who):
    """CPU and wall ms of a guest's WRITES port writes."""
    watcher = watched_by(who)
    guest = native.Guest("-c", 1, "-p", native.CPUS[-1], f"out:{WRITES}")
    before, start = procs.cpu_ms(guest.pid), time.monotonic()
    guest.go()
    while guest.out.next(60) is not None:
        pass
    wall = (time.monotonic() - start) * 1000
    _, status, used = os.wait4(guest.pid, 0)
    guest.p.returncode = status
    if watcher:
        watcher.terminate()
        watcher.stdout and watcher.stdout.close()
        watcher.wait()
    return (used.ru_utime + used.ru_stime) * 1000 - before, wall


def slowdown():
    """The guest's own time, and what each watcher adds to one of its exits (two events each)."""
    cpu = {w: [] for w in ("none", "bpf", "events", "perf")}
    for _ in range(9):
        for who in cpu:
            cpu[who].append(one_guest(who)[0])
        calibrate()
    added = {w: [(c - n) * 1e6 / WRITES for c, n in zip(cpu[w], cpu["none"])] for w in cpu}
    what = f"guest of {WRITES} port writes, VM's CPU"
    return [Row(f"{what}, counted (bpf)", "ms", cpu["bpf"], "unwatched", cpu["none"]),
            Row(f"{what}, each taken (perf)", "ms", cpu["events"], "unwatched", cpu["none"]),
            Row("  what bpf adds to an exit", "ns", added["bpf"], "perf record", added["perf"], ratio=0.2),
            Row("  what taking each event adds to an exit", "ns", added["events"], "perf record", added["perf"],
                ratio=1.05)]


def own():
    """What kvmtop's screen itself takes while two guests leave guest mode as fast as they can."""
    guests = [native.Guest("-p", cpu, "out:inf").go() for cpu in native.CPUS[-2:]]
    s = procs.Screen("--event", "all")
    s.read(5)  # what is new is looked at
    share = [ms / 10 for ms in s.cpu_samples(5, 5.0)]  # a window of one tick may hold none or two
    s.close()
    for g in guests:
        g.kill()
    return [Row("own CPU, screen, two VMs at full event rate", "% of a CPU", share, limit=1)]


# --- a large host, from files -------------------------------------------------------------------
def tmpfs():
    where = "/dev/shm" if os.path.ismount("/dev/shm") else None
    return tempfile.mkdtemp(prefix="kvmtop-bench-", dir=where)


def first_frames(root):
    frame, rows, rates = [], [], []
    for _ in range(5):
        s = procs.Screen("--root", root)
        frame.append(s.until(rb"kvmtop.*Enter"))
        rows.append(s.until(rb"vm\d{4}"))
        rates.append(s.until(rb"vm\d{4}[^\n]*?\d\.\d"))
        s.close()
        calibrate()
    return [Row(f"first frame, {VMS} VMs x {VCPUS} vCPUs", "s", frame, limit=0.2),
            Row("  first frame with VMs in it", "s", rows),
            Row("  first rates", "s", rates, limit=1.0)]


def steady(root):
    s = procs.Screen("--root", root)
    found = s.until_vcpus(VMS * VCPUS)
    s.read(3)
    cpu = s.cpu_samples(3, 5.0)  # a window of one tick may hold none or two
    rss = procs.rss_mib(s.pid)
    s.close()
    threads = VMS * (VCPUS + 1)
    return [Row("  all of them found after", "s", [found]),
            Row(f"screen, {VMS} x {VCPUS} vCPUs from files, CPU a tick", "ms", cpu),
            Row("  a thread", "us", [c * 1000 / threads for c in cpu]),
            Row("  resident memory, no events", "MiB", [rss], limit=256)]


def tree():
    where = tmpfs()
    root = os.path.join(where, "root")
    try:
        subprocess.run([sys.executable, os.path.join(os.path.dirname(__file__), "make_root.py"), root, str(VMS),
                        str(VCPUS)], check=True)
        return first_frames(root) + steady(root)
    finally:
        shutil.rmtree(where)


# --- real threads -------------------------------------------------------------------------------
def carried():
    """How many VMs: what the numbers of threads and the memory (4 MiB a VM, half of it left) allow."""
    if REAL_VMS:
        return REAL_VMS
    with open("/proc/sys/kernel/pid_max", encoding="ascii") as f:
        pids = int(f.read()) - 8000
    with open("/proc/meminfo", encoding="ascii") as f:
        free = next(int(ln.split()[1]) for ln in f if ln.startswith("MemAvailable")) // 1024
    return min(VMS, pids // (VCPUS + 1), free // 8)


def start_vms(program):
    """Real VMs whose vCPUs sleep most of the time, as many as can be had."""
    argv = ["nice", "-n", "10", native.TINYVM, "-n", "-c", str(VCPUS), "-l", "inf", program]
    vms = [native.child(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
           for _ in range(carried())]
    for vm in vms:
        for ln in vm.stdout:
            if ln.startswith(b"go"):
                break
    return [vm for vm in vms if vm.poll() is None]


def end_vms(vms):
    for vm in vms:
        vm.kill()
    for vm in vms:
        vm.wait()
        vm.stdout.close()  # or the sleepers of the next part would have them all open


PEERS = {"pidstat -t": (["pidstat", "-t", "-p", "ALL", "1"], b"UID"),
         "top -H -b": (["top", "-H", "-b", "-d", "1"], b"top - ")}


def threads():
    vms = start_vms("sleep:60000")
    nthreads = len(vms) * (VCPUS + 1)
    cpu, theirs = [], {p: [] for p in PEERS}
    try:
        s = procs.Screen()
        s.until_vcpus(len(vms) * VCPUS)
        s.read(20)  # names and groups of threads that are new are looked at again in the first 20 ticks
        for _ in range(4):
            # The screen stays: it is the same process at every turn, its own figures between the peers'.
            cpu.append(sum(s.cpu_samples(5)) / 5)
            for peer, (argv, marker) in PEERS.items():
                theirs[peer].append(procs.per_tick(argv, marker, 1, 3, idle=s.read))
            calibrate()
        rss = procs.rss_mib(s.pid)
        s.close()
    finally:
        end_vms(vms)
    cheaper = min(theirs, key=lambda p: sum(theirs[p]))
    dearer = max(theirs, key=lambda p: sum(theirs[p]))
    return [Row(f"screen, {len(vms)} real VMs, {nthreads} threads, CPU a tick", "ms", cpu, cheaper, theirs[cheaper],
                ratio=0.25),
            Row("  beside the dearer peer", "ms", cpu, dearer, theirs[dearer]),
            Row("  a thread", "us", [x * 1000 / nthreads for x in cpu], cheaper,
                [x * 1000 / nthreads for x in theirs[cheaper]]),
            Row("  resident memory", "MiB", [rss])]


# --- the whole program, with events of eight keys a vCPU ----------------------------------------
EIGHT_KEYS = "out:1 in:1 mmior:1 mmiow:1 rdmsr:1 wrmsr:1 sleep:8000"


def settled(s, limit=120):
    """Resident MiB once it has not grown by a hundredth in 15 s."""
    last, stop = 0, time.monotonic() + limit
    while (now := procs.rss_mib(s.pid)) > last * 1.01 and time.monotonic() < stop:
        last = now
        s.read(15)
    return now


def whole():
    vms = start_vms(EIGHT_KEYS)
    n = len(vms) * VCPUS
    try:
        s = procs.Screen("--event", "all", "--max-overhead", "0")
        s.until_vcpus(n)
        rss = settled(s)
        cpu = s.cpu_samples(3, 5.0)
        s.close()
    finally:
        end_vms(vms)
    return [Row(f"resident memory, {n} real vCPUs, events of 8 keys each", "MiB", [rss], limit=256),
            Row("  CPU a second, all kinds of events", "ms", cpu)]


# --- discovery among processes that are no VM ---------------------------------------------------
# Only the fd folders: find on all of /proc would walk much more, and be no fair peer.
SCAN = ["sh", "-c", "exec find /proc/[0-9]*/fd -lname 'anon_inode:kvm-*'"]


def sleepers(n):
    pids = []
    for _ in range(n):
        pid = os.fork()
        if pid == 0:
            time.sleep(600)
            os._exit(0)
        pids.append(pid)
    return pids


def discovery():
    pids = sleepers(PROCESSES)
    argv = [native.KVMTOP, *HOST_CSV, "--collectors", "vms"]
    without = ["unshare", "-m", "sh", "-c", f"umount -l {native.DEBUGFS}; exec \"$@\"", "sh", *argv]
    ours, bare, scan = [], [], []
    try:
        for _ in range(3):
            # After the first look at every process, which is spread over the first seconds.
            ours.append(procs.per_tick(argv, b"\n", 3, 4))
            bare.append(procs.per_tick(without, b"\n", 3, 4))
            scan.append(procs.cpu_of_command(SCAN))
    finally:
        for pid in pids:
            os.kill(pid, 9)
        for pid in pids:
            os.waitpid(pid, 0)
    what = f"discovery, {PROCESSES} processes, CPU a tick"
    return [Row(what, "ms", ours, "all their fds", scan), Row("  without debugfs", "ms", bare, "all their fds", scan)]


# --- symbols ------------------------------------------------------------------------------------
LINES = 200000


def big_kallsyms(path):
    """This kernel's own list, filled up with modules as they are spelled: LINES lines."""
    with open("/proc/kallsyms", encoding="utf-8") as f:
        lines = f.read().splitlines()[:LINES]
    names = [ln.split()[2] for ln in lines if " t " in ln or " T " in ln]
    at = 0xffffffffc1000000
    for i in range(LINES - len(lines)):
        if i % 500 == 0:
            at += 0x10000
        at += 16 + i * 7 % 97
        lines.append(f"{at:016x} t {names[i % len(names)]}\t[module_{i // 500}]")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")


def symbols():
    with tempfile.TemporaryDirectory() as folder:
        big, small, data = (os.path.join(folder, n) for n in ("big", "small", "perf.data"))
        big_kallsyms(big)
        with open(small, "w", encoding="utf-8") as f:
            subprocess.run(["grep", "-wE", "_stext|_text|_etext", big], stdout=f, check=True)
        subprocess.run(["perf", "record", "-q", "-a", "-e", "cpu-clock", "-o", data, "sleep", "0.3"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        report = ["perf", "report", "-i", data, "--stdio", "-s", "sym", "--kallsyms"]
        rows, theirs = program("bench_symbols", big), []
        ours = rows[0].ours
        for _ in ours:
            theirs.append(procs.cpu_of_command([*report, big]) - procs.cpu_of_command([*report, small]))
    return [Row(f"symbols: load a kallsyms of {LINES} lines", "ms", ours, "perf report", theirs, limit=60), *rows[1:]]


# --- the emulated host whose exits are real ------------------------------------------------------
KERNEL_SOURCE = "/usr/src/linux-source-6.1.tar.xz"


def kvm_stat():
    """The kernel's own kvm_stat, which Debian has in no package: out of its source. None: not to be had."""
    where = os.path.join(native.BUILD, "lab/kvm_stat")
    if not os.path.exists(where) and os.path.exists(KERNEL_SOURCE):
        os.makedirs(os.path.dirname(where), exist_ok=True)
        member = "linux-source-6.1/tools/kvm/kvm_stat/kvm_stat"
        with open(f"{where}.new", "wb") as f:
            subprocess.run(["tar", "-xOf", KERNEL_SOURCE, "--occurrence=1", member], stdout=f, check=True)
        os.rename(f"{where}.new", where)
    return [where] if os.path.exists(where) else []


def lab():
    script = os.path.join(native.TOP, "tests/bench/in_lab.py")
    p = subprocess.run(["tests/lab/run.sh", "--seconds", "660", script, *kvm_stat()], check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    rows = from_json(p.stdout)
    if p.returncode or not rows:
        raise RuntimeError(f"the lab ended with {p.returncode}: {p.stdout[-300:]}")
    return rows


# --- what perf recorded -------------------------------------------------------------------------
REPORT_EVENTS = 1000000


def usage_of(argv):
    """CPU time in s and the largest resident memory in MiB, as long as it was seen (wait4 would tell Python's)."""
    p = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0
    while True:
        pid, _, used = os.wait4(p.pid, os.WNOHANG)
        if pid:
            break
        with open(f"/proc/{p.pid}/status", encoding="ascii", errors="replace") as f:
            text = f.read()
        if "VmHWM" in text and f"Name:\t{os.path.basename(argv[0])[:15]}\n" in text:
            most = max(most, int(text.split("VmHWM:")[1].split()[0]) / 1024)
        time.sleep(0.003)
    p.returncode = 0
    return used.ru_utime + used.ru_stime, most


def report():
    """A real recording again and again, as a longer run would have written it."""
    rec = perfdata_lib.Recording(os.path.join(native.TOP, "tests/data/perf/kvm-6.1-svm.perf.data.xz"))
    ours, theirs, all_kinds = [], [], []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        file = os.path.join(folder, "perf.data")
        rec.save(file, perfdata_lib.repeat(rec, REPORT_EVENTS))
        for _ in range(9):
            ours.append(usage_of([native.KVMTOP, "report", "-i", file]))
            theirs.append(usage_of(["perf", "kvm", "-i", file, "stat", "report", "-f"]))
            all_kinds.append(usage_of([native.KVMTOP, "report", "-i", file, "--event", "vmexit,mmio,ioport,msr"]))
    peer = "perf kvm stat report"
    million = f"{REPORT_EVENTS / 1e6:g} million events"
    return [Row(f"report: {million}, CPU", "s", [u[0] for u in ours], peer, [u[0] for u in theirs], ratio=1 / 3),
            Row(f"report: {million}, memory", "MiB", [u[1] for u in ours], peer, [u[1] for u in theirs], ratio=1 / 4),
            Row(f"report: {million}, four tables, CPU", "s", [u[0] for u in all_kinds])]


def recorder():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        return program("bench_store", folder)


# --- a week of recording, and many kills ----------------------------------------------------------
WEEK_VCPUS = 310


def week():
    where = tmpfs()  # what is asked is how much there is to read, not how fast the disk is
    file = os.path.join(where, "week.db")
    ours = []
    try:
        rows = program("bench_week", file, str(WEEK_VCPUS))
        for hours in (1, 30, 60, 90, 120, 150, 165):
            at = time.strftime("%Y-%m-%dT%H:%M", time.localtime(time.time() - hours * 3600))
            start = time.monotonic()
            subprocess.run([native.KVMTOP, "replay", file, "--at", at, "-b", "-n", "1"], check=True,
                           stdout=subprocess.DEVNULL)
            ours.append(time.monotonic() - start)
    finally:
        shutil.rmtree(where)
    return rows + [Row("  kvmtop replay --at, until it has ended", "s", ours, limit=0.2)]


def kills(number=200):
    """record.py kills a recorder again and again, anywhere in an interval, and reads what is left."""
    script = os.path.join(native.TOP, "tests/integration/record.py")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        p = subprocess.run([sys.executable, script, "kills"], text=True, capture_output=True, check=False,
                           env=dict(os.environ, KILLS=str(number), TEST_TMP=folder))
    if p.returncode or f"ok 1 - {number} kills" not in p.stdout or "not ok" in p.stdout:
        raise RuntimeError(f"a killed recording is not whole: {p.stdout}{p.stderr}")
    return [Row("recorder: killed, the recording was whole", "times", [number])]


PARTS = {p.__name__: p for p in (events, model, counts, slowdown, own, tree, threads, whole, discovery, symbols, merge,
                                 report, recorder, week, kills, lab)}

GUESTS_OF_THIS_MACHINE = (slowdown, own, threads, whole)


def too_long(*_):
    raise TimeoutError(f"{LIMIT} s are over")


def main():
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(LIMIT)
    wanted = sys.argv[1:] or list(PARTS)
    start, load, failed = time.monotonic(), os.getloadavg()[0], False
    cpu = next((ln.split(": ")[1].strip() for ln in open("/proc/cpuinfo", encoding="utf-8") if "model name" in ln), "?")
    print(f"kvmtop bench, {time.strftime('%Y-%m-%d %H:%M')}, {cpu} x {os.cpu_count()}, Linux {platform.release()}")
    print(header(), flush=True)
    for name in wanted:
        calibrate()
        try:
            if PARTS[name] in GUESTS_OF_THIS_MACHINE and not os.access("/dev/kvm", os.W_OK):
                raise RuntimeError("it watches real guests, and there is no /dev/kvm")
            rows = PARTS[name]()
        except (OSError, RuntimeError, TimeoutError, subprocess.CalledProcessError) as e:
            print(f"{name}: could not be measured: {e}", flush=True)
            failed = True
            continue
        for row in rows:
            print(line(row.cells()), flush=True)
    calibrate()
    print(line(Row("this machine: the same 40 MiB of SHA-256", "ms", noise).cells()))
    print(f"load {load:.1f} at the start, {os.getloadavg()[0]:.1f} at the end; {time.monotonic() - start:.0f} s")
    return failed


sys.exit(main())
