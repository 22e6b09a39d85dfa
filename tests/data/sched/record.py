#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Records what /proc says of one busy thread in a known situation: record.py SITUATION > FILE

  idle-class  a SCHED_IDLE spinner beside a normal one on one CPU, every 0.1 s
  half        one of two equal spinners on one CPU, every 0.25 s
  quota       a spinner alone under a quota of 40% (cgroup v1), every 0.25 s; throttled_time too
  stop        a spinner that is stopped (SIGSTOP) and continued, every 0.25 s
  sleeper     runs 5 ms, sleeps 5 ms, alone, every 0.1 s

A line: time in ns (CLOCK_MONOTONIC), voluntary switches, throttled ns, schedstat, stat; apart by |.
"""

import os
import signal
import sys
import time

CPU = max(os.sched_getaffinity(0))
GROUP = "/sys/fs/cgroup/cpu/kvmtop-record"


def child(work, idle=False):
    pid = os.fork()
    if pid:
        return pid
    os.sched_setaffinity(0, {CPU})
    if idle:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    while True:
        work()


def spin():
    for _ in range(100000):
        pass


def doze():
    end = time.monotonic() + 0.005
    while time.monotonic() < end:
        pass
    time.sleep(0.005)


def read(path):
    with open(path) as f:
        return f.read()


def line(pid, group):
    stat = read(f"/proc/{pid}/stat").strip()
    now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    sched = read(f"/proc/{pid}/schedstat").strip()
    vol = [x.split()[1] for x in read(f"/proc/{pid}/status").split("\n") if x.startswith("voluntary")][0]
    throttled = 0
    if group:
        throttled = [x.split()[1] for x in read(GROUP + "/cpu.stat").split("\n") if x.startswith("throttled_time")][0]
    return f"{now}|{vol}|{throttled}|{sched}|{stat}"


def main():
    what = sys.argv[1]
    step = 0.1 if what in ("idle-class", "sleeper") else 0.25
    pids = []
    if what == "quota":
        os.mkdir(GROUP)
        with open(GROUP + "/cpu.cfs_quota_us", "w") as f:
            f.write("40000")
    try:
        if what == "sleeper":
            pids = [child(doze)]
        else:
            pids = [child(spin, what == "idle-class")]
        if what in ("idle-class", "half"):
            pids.append(child(spin))
        if what == "quota":
            with open(GROUP + "/tasks", "w") as f:
                f.write(str(pids[0]))
        time.sleep(0.5)
        for i in range(40 if step == 0.1 else 16):
            if what == "stop" and i == 5:
                os.kill(pids[0], signal.SIGSTOP)
            if what == "stop" and i == 11:
                os.kill(pids[0], signal.SIGCONT)
            print(line(pids[0], what == "quota"))
            time.sleep(step)
    finally:
        for p in pids:
            os.kill(p, signal.SIGKILL)
            os.waitpid(p, 0)
        if what == "quota":
            os.rmdir(GROUP)


main()
