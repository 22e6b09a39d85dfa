#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, debugfs, cgroup-cpu
# sanitize: no, it measures CPU time
# limit: 120
"""steal.py once more with the threads' counters read from /proc, as on a kernel without BPF."""

import os
import runpy

os.environ["TEST_THREADS_BY"] = "proc"
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "steal.py"), run_name="__main__")
