#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds the table of who may include whom: the #include lines of each layer, and the symbols that the
built objects ask for. A new file in src/ needs a place in LAYERS; that is the point."""

import fnmatch
import os
import re
import subprocess
import sys
from glob import glob

# Layer: its files (names without .c and .h, * allowed), and the layers that it may include beside
# itself. A file belongs to the first layer that names it.
LAYERS = {
    "ring": ("src/ring src/perf_rings src/perf_thread src/perfdata src/perfdata_* src/tracetext", "base"),
    "base": ("src/sample src/hex src/decimal src/grow src/hist src/history src/clock src/fetch src/text src/value src/sysroot src/stream "
             "src/inventory src/inventory_* src/kvm_* src/symbolic src/perf_access src/perf_alive "
             "src/procfs src/cgroup src/hoststat src/utf8 src/snapshot src/demand src/filter "
             "src/tar src/host_facts src/host_facts_* src/own_path src/version src/priority src/out src/tsc "
             "src/tsc_* src/trace_instance src/pmu src/pmu_*", ""),
    "field": ("src/field src/field_*", "base"),
    "model": ("src/model src/model_* src/exits src/exits_* src/slices src/symset src/use src/waited src/findings src/when "
              "src/format src/format_* src/batch_table src/store src/store_* src/diff src/diff_* "
              "src/anonymize",
              "base field collector.h"),
    # The interface alone: the vtable, and the sink that the model implements.
    "collector.h": ("src/collector", "base"),
    "collectors": ("collectors/*", "base ring collector.h"),
    "symbols": ("symbols/*", "base"),
    "ui": ("ui/*", "base field"),
    # The small VMM of demo and tests.
    "tinyvm": ("src/tinyvm src/tinyvm_*", "base"),
    "top": ("src/main src/cmd_* src/engine src/engine_* src/reader src/governor src/options "
            "src/doctor src/demo src/options_* src/commands src/batch_out "
            "src/report src/report_* src/screen src/merge src/merge_* "
            "src/child src/signals src/vm_find src/trace_guest src/bundle src/bundle_*", "*"),
}

# Libraries: the headers, and the files or layers that may include them.
LIBRARIES = {
    "curses": (r"(n?curses|ncursesw/.*|term|panel)\.h", "ui/term_ncurses.c"),
    "libperf": (r"perf/.*|internal/.*", "ring collectors top"),
    "libtraceevent": (r"(traceevent/)?(event-parse|event-utils|trace-seq|kbuffer)\.h",
                      "base ring collectors"),
    "libelf": (r"(libelf|gelf|elf)\.h|elfutils/.*", "symbols"),
    "zlib": (r"zlib\.h", "src/tar.c symbols model"),
    "zstd": (r"zstd\.h", "ring src/store_pack.c"),
    "liblzma": (r"lzma(/.*)?\.h", "symbols"),
    "libbpf": (r"bpf/.*", "collectors"),
    "libproc2": (r"libproc2/.*", "collectors"),
    "jansson": (r"jansson\.h", "model"),
    "expat": (r"expat\.h", "collectors"),
    "sqlite": (r"sqlite3\.h", "src/store.c model"),
}

# Symbols that layers below the commands never ask for: library code does not exit and does not print.
SILENT = "ring base field model collectors symbols".split()
FORBIDDEN = set("exit _exit _Exit abort quick_exit printf vprintf puts putchar perror err errx warn "
                "warnx __printf_chk __vprintf_chk stdout stderr error".split())


def layer_of(path):
    stem = os.path.splitext(path)[0]
    for name, (patterns, _) in LAYERS.items():
        if any(fnmatch.fnmatch(stem, p) for p in patterns.split()):
            return name
    return None


def find_header(name, path):
    """The file of ours that `#include "name"` means: beside the includer, else on the -I paths."""
    for folder in (os.path.dirname(path), "src", "collectors", "symbols", "ui"):
        p = os.path.normpath(os.path.join(folder, name))
        if os.path.exists(p):
            return p
    return None


def library_problem(path, layer, header):
    for lib, (pattern, users) in LIBRARIES.items():
        if re.fullmatch(pattern, header) and path not in users.split() and layer not in users.split():
            return f"{path}: <{header}>: {lib} is for {users} only"
    return None


def check_includes(path):
    layer = layer_of(path)
    if not layer:
        yield f"{path}: in no layer: give it a place in LAYERS of scripts/check_deps.py"
        return
    allowed = LAYERS[layer][1].split() + [layer]
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for quote, name in re.findall(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', text, re.M):
        ours = find_header(name, path) if quote == '"' else None
        if not ours:
            problem = library_problem(path, layer, name)
            if problem:
                yield problem
            continue
        other = layer_of(ours)
        if "*" not in allowed and other not in allowed:
            yield f"{path}: {name}: {layer} may include {', '.join(sorted(set(allowed)))}, " \
                  f"and not {other}"


def nm(*args):
    out = subprocess.run(["nm", *args], capture_output=True, text=True, check=False).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()}


def curses_symbols():
    """What the curses libraries define, from the shared ones that the compiler would link with."""
    names = set()
    for lib in ("ncursesw", "tinfo", "panelw"):
        out = subprocess.run(["gcc", f"-print-file-name=lib{lib}.so"], capture_output=True, text=True,
                             check=True).stdout.strip()
        for file in glob(out + "*") if os.path.isabs(out) else []:  # the .so may be a linker script
            names |= nm("-D", "--defined-only", file)
    return names


def check_symbols():
    objects = sorted(o for o in glob("build/obj/*/*.o") if o.startswith(
        ("build/obj/src/", "build/obj/collectors/", "build/obj/symbols/", "build/obj/ui/")))
    sources = {o: o.removeprefix("build/obj/")[:-2] + ".c" for o in objects}
    objects = [o for o in objects if os.path.exists(sources[o])]  # not those of files that are gone
    defined = set().union(*(nm("--defined-only", "-g", o) for o in objects))
    curses = curses_symbols() - defined
    if not curses:
        yield "no curses library found: nothing was compared"
    for o in objects:
        path, wanted = sources[o], nm("-u", o)
        used = sorted(wanted & curses)
        if used and path != "ui/term_ncurses.c":
            yield f"{path}: uses curses: {', '.join(used)}: ui/term_ncurses.c only"
        loud = sorted(wanted & FORBIDDEN - defined)
        if loud and layer_of(path) in SILENT:
            yield f"{path}: exits or prints: {', '.join(loud)}: library code returns -errno"


def main():
    files = sorted(f for d in ("src", "collectors", "symbols", "ui") for f in glob(f"{d}/*.[ch]"))
    problems = [p for f in files for p in check_includes(f)]
    problems += check_symbols()
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
