# SPDX-License-Identifier: GPL-2.0-only
"""The lab's two QEMU guests (tests/lab/run.sh): booted once, shared by all test scripts of a boot.

The first script that asks for them boots them, which takes a minute; the next ones find them by
their sockets. They obey tests/lab/guest/load.c's commands and rest between the scripts.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time

from patience import PATIENCE

WHERE = "/tmp/lab-guests"  # in the lab, where /tmp is empty at first
NAMES = {"web01": 2, "db02": 1}  # vCPUs
MOVED = ("db02",)  # whose kernel KASLR moves, as a host's kernel does that unpacks itself
BOOT_LIMIT = 180
APPEND = ("console=ttyS0,115200 quiet panic=-1 mitigations=off nopvspin no_timer_check "
          "random.trust_cpu=on nowatchdog rdinit=/init")
# How much of a guest's kernel its timer takes is a matter of the machine's speed, for it comes by the clock.
TIMER = "native_write_msr|asm_sysvec_apic_timer_interrupt"


class Line:
    """A Unix socket, line by line."""

    def __init__(self, path, limit):
        self.s, self.rest = socket.socket(socket.AF_UNIX), b""
        end = time.monotonic() + limit * PATIENCE
        while True:
            try:
                self.s.connect(path)
                return
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def send(self, text):
        self.s.settimeout(20 * PATIENCE)
        self.s.sendall(text.encode() + b"\n")

    def next(self, limit):
        """A line, or None when there is none in time."""
        end = time.monotonic() + limit * PATIENCE
        while b"\n" not in self.rest:
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.s.settimeout(left)
            try:
                got = self.s.recv(4096)
            except socket.timeout:
                return None
            if not got:
                return None
            self.rest += got
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode("utf-8", "replace").strip()

    def until(self, word, limit):
        """Lines until one is `word`; False when it does not come."""
        end = time.monotonic() + limit * PATIENCE
        while (left := end - time.monotonic()) > 0:
            if self.next(left / PATIENCE) == word:
                return True
        return False


class QemuGuest:
    """One guest; `boot` starts it, without it a running one is taken. `initrd`: another than the one that the lab has;
    `preload`: a library for its QEMU."""

    def __init__(self, name, boot, initrd=None, preload=None):
        self.name, self.ncpus = name, NAMES.get(name, 1)
        self.initrd, self.preload = initrd or os.environ.get("LAB_INITRD"), preload
        self.at, self.booting = os.path.join(WHERE, name), boot
        if boot:
            self.start()
        with open(f"{self.at}.pid", encoding="ascii") as f:
            self.pid = int(f.read())
        self.console = Line(f"{self.at}.console", 20)

    def start(self):
        """In a session of its own: it outlives the script."""
        moved = self.name in MOVED
        argv = ["nice", "-n", "5", "qemu-system-x86_64", "-accel", "kvm", "-cpu", "host", "-M", "pc",
                "-name", f"guest={self.name},debug-threads=on", "-smp", str(self.ncpus), "-m", "256M",
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-kernel", os.environ["LAB_BZIMAGE" if moved else "LAB_KERNEL"],
                "-initrd", self.initrd, "-append", APPEND + ("" if moved else " nokaslr"),
                "-serial", f"unix:{self.at}.console,server=on,wait=off",
                "-chardev", f"socket,id=shell,path={self.at}.shell,server=on,wait=off",
                "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=shell",
                "-qmp", f"unix:{self.at}.qmp,server=on,wait=off", "-pidfile", f"{self.at}.pid"]
        with open(f"{self.at}.log", "wb") as log:
            p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                 env={**os.environ, **({"LD_PRELOAD": self.preload} if self.preload else {})})
        end = time.monotonic() + 30 * PATIENCE
        while not (os.path.exists(f"{self.at}.pid") and os.path.getsize(f"{self.at}.pid")):
            if p.poll() is not None or time.monotonic() > end:
                with open(f"{self.at}.log", encoding="utf-8", errors="replace") as f:
                    raise RuntimeError(f"{self.name} does not start: {f.read()}")
            time.sleep(0.1)

    def ready(self, limit=BOOT_LIMIT):
        """Waits for its program; what it ran before goes on."""
        if not self.booting:
            self.console.send("ping")  # a kernel that boots may choke on input
        start, before, more = time.monotonic(), waited(), 0.0
        while not self.console.until("ready" if self.booting else "pong", 5):
            more = max(more, (waited() - before) / 2)  # as for a script (lab_session.py)
            if time.monotonic() - start > limit + more:
                raise RuntimeError(f"{self.name} says nothing for {limit + more:.0f} s")
        self.booting = False
        return self

    def load(self, what, times=0, limit=60):
        """Starts a load of load.c; with `times` waits for its end."""
        self.console.send(f"load {what} {times}")
        if not self.console.until(f"did {what} {times}" if times else f"on {what}", limit):
            raise RuntimeError(f"{self.name} does not {what}")

    def rest(self):
        self.console.send("stop")
        if not self.console.until("off", 30):
            raise RuntimeError(f"{self.name} does not stop")

    def shell(self):
        """The words before `sh` of a command that runs its standard input there, once, as ssh does."""
        self.console.send("shell")
        if not self.console.until("on shell", 30):
            raise RuntimeError(f"{self.name} has no shell")
        return [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lab/guest/shell.py"),
                f"{self.at}.shell"]

    def address(self, symbol):
        """Where its kernel has a symbol, by its own /proc/kallsyms; 0: it has none."""
        self.console.send(f"symbol {symbol}")
        end = time.monotonic() + 60 * PATIENCE
        while (left := end - time.monotonic()) > 0:
            words = (self.console.next(left / PATIENCE) or "").split()
            if words[:2] == ["symbol", symbol]:
                return int(words[2], 16)
        raise RuntimeError(f"{self.name} does not say where {symbol} is")

    def vcpu_tids(self):
        """{vCPU: tid}, by QEMU's names."""
        tids = {}
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{tid}/comm", encoding="ascii", errors="replace") as f:
                words = f.read().split()
            if words[0] == "CPU" and words[1].endswith("/KVM"):
                tids[int(words[1].removesuffix("/KVM"))] = int(tid)
        return tids

    def freeze(self, on=True):
        """SIGSTOP for the whole process: its vCPUs leave the guest and stay out."""
        os.kill(self.pid, signal.SIGSTOP if on else signal.SIGCONT)

    def qmp(self, command, **arguments):
        """One QMP command; its answer."""
        q = Line(f"{self.at}.qmp", 20)
        q.next(20)
        for c, a in (("qmp_capabilities", {}), (command, arguments)):
            q.send(json.dumps({"execute": c, "arguments": a}))
            while (answer := json.loads(q.next(20) or '{"error": "none"}')).keys().isdisjoint(("return", "error")):
                pass
        q.s.close()
        return answer

    def end(self, limit=60):
        """Powers it off."""
        self.console.send("end")
        end = time.monotonic() + limit * PATIENCE
        while time.monotonic() < end:
            if not os.path.exists(f"/proc/{self.pid}"):
                return
            time.sleep(0.2)
        os.kill(self.pid, signal.SIGKILL)
        raise RuntimeError(f"{self.name} does not power off")


def waited():
    """Seconds that the lab's emulated CPUs waited for real ones so far; 0: not known yet."""
    try:
        with open("/tmp/results/.waited", encoding="ascii") as f:
            return int(f.read()) / 1e9
    except (OSError, ValueError):
        return 0.0


def missing():
    """Why there can be no QEMU guests here; None: there can."""
    if not os.environ.get("LAB_KERNEL"):
        return "not in the lab"
    if not os.path.exists(os.environ["LAB_INITRD"]):
        return "no initramfs for guests: make lab-programs"
    return None


def shared_cpu():
    """Both emulated CPUs share one of this machine (run.sh): all takes twice as long."""
    return os.environ.get("LAB_THREADS") == "shared"


def running(name):
    try:
        with open(os.path.join(WHERE, f"{name}.pid"), encoding="ascii") as f:
            return os.path.exists(f"/proc/{int(f.read())}")
    except (OSError, ValueError):
        return False


def start(names=tuple(NAMES), initrd=None, preload=None):
    """The guests, running but perhaps still booting: wait with ready()."""
    os.makedirs(WHERE, exist_ok=True)
    return [QemuGuest(name, not running(name), initrd, preload) for name in names]


def pair():
    """Both guests, ready and at rest."""
    guests = start()
    for g in guests:
        g.ready().rest()
    return guests
