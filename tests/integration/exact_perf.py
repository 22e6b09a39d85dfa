#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# needs: root, kvm, tracefs, debugfs, perf-events
# limit: 240
"""exact.py once more with each event taken through perf, as where counting in the kernel cannot be had."""

import os
import runpy

os.environ["TEST_EVENTS_BY"] = "perf"
runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "exact.py"), run_name="__main__")
