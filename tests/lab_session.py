#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs test scripts one after the other in one boot of the lab (tests/lab/run.sh):

    tests/lab/run.sh tests/lab_session.py NAME=BUILD:LIMIT:SCRIPT…

What a script prints stands between the lines `lab-begin NAME` and `lab-end NAME STATUS SECONDS`
(tests/run takes it apart); STATUS is `limit` when it ran longer than LIMIT seconds, and `left` is added
where it left processes behind. QEMU guests (lab_guests.py) are not its own. Where one thread emulates both CPUs
(run.sh) it may run twice as long.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

import lab_guests


def alive(group):
    try:
        os.killpg(group, 0)
        return True
    except ProcessLookupError:
        return False


def end_group(group):
    """True when something of it was left, a moment after its script ended."""
    for wait, sig in ((1, 0), (3, signal.SIGTERM), (3, signal.SIGKILL)):
        end = time.monotonic() + wait
        while alive(group):
            if sig:
                os.killpg(group, sig)
                sig = 0
            if time.monotonic() > end:
                break
            time.sleep(0.05)
        else:
            return wait != 1
    return True


class KernelLog:
    """What the lab's kernel says: one that found itself or a guest broken is why a test failed."""

    def __init__(self):
        self.fd = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)

    def warnings(self):
        """What it said since the last call, from warnings on."""
        found = []
        while True:
            try:
                head, _, text = os.read(self.fd, 8192).decode("utf-8", "replace").partition(";")
                if int(head.split(",")[0]) & 7 <= 4:
                    found.append(text.splitlines()[0])
            except BlockingIOError:
                return found
            except OSError:
                pass  # EPIPE: more was said than is kept


def wait(p, limit):
    """
    Its exit status, or "limit". What the lab's CPUs waited for real ones counts for half, as there are two of them:
    beside others' work everything takes its time.
    """
    start, waited = time.monotonic(), lab_guests.waited()
    more = 0.0
    while True:
        try:
            return p.wait(2)
        except subprocess.TimeoutExpired:
            more = max(more, (lab_guests.waited() - waited) / 2)  # 0 when it is not known in this moment
            if time.monotonic() - start > limit + more:
                return "limit"


def run(name, build, limit, script, kernel):
    print(f"lab-begin {name}", flush=True)
    kernel.warnings()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as tmp:
        results = os.path.join(os.environ["RESULTS"], name.replace("/", "-"))
        os.makedirs(results, exist_ok=True)
        log = f"log_path={results}/sanitizer"
        env = {**os.environ, "BUILD": build, "KVMTOP": f"{build}/kvmtop", "RESULTS": results, "TEST_TMP": tmp,
               "TMPDIR": tmp, "LC_ALL": "C.UTF-8", "TZ": "UTC", "PAGER": "cat",
               "ASAN_OPTIONS": f"exitcode=99:{log}", "UBSAN_OPTIONS": f"print_stacktrace=1:{log}",
               "LSAN_OPTIONS": f"suppressions={os.environ['TOP']}/tests/lsan.supp:print_suppressions=0"}
        # ASan and addresses chosen at random do not always agree
        argv = (["setarch", "-R"] if "/asan" in build else []) + ["/usr/bin/python3", script]
        p = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT,
                             start_new_session=True)
        status = wait(p, limit)
        if status == "limit":
            os.killpg(p.pid, signal.SIGTERM)
        if end_group(p.pid) and status != "limit":
            status = f"{status} left"
        p.wait()
        for report in sorted(f for f in os.listdir(results) if f.startswith("sanitizer")):
            with open(os.path.join(results, report), encoding="utf-8", errors="replace") as f:
                print(f"not ok 1 - a sanitizer's report: {report}\n{f.read()}", flush=True)
        said = kernel.warnings() if status != 0 else []
        for line in said[-60:]:
            print(f"# kernel: {line}", flush=True)
    print(f"lab-end {name} {status} {time.monotonic() - start:.1f}", flush=True)


def main():
    kernel = KernelLog()
    slower = 1 if os.environ.get("LAB_THREADS") == "multi" else 2
    for word in sys.argv[1:]:
        name, _, rest = word.partition("=")
        build, limit, script = rest.split(":")
        run(name, build, int(limit) * slower, script, kernel)


main()
