#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""What is made from the program's own tables: lists in the man page, completions, docs/fields.md and
the properties of the JSON Schema.

scripts/generated.py          writes them anew (after a change of a table)
scripts/generated.py --check  says which of them are out of date; exit status 1 then

The program is $KVMTOP, by default build/kvmtop. What stands around the lists is written by hand:
man/kvmtop.1 has `.\\" BEGIN name` and `.\\" END name` around each.
"""

import json
import os
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KVMTOP = os.environ.get("KVMTOP", os.path.join(TOP, "build/kvmtop"))
FIELD_TABLES = [  # as in field_list(); which --table shows it; what it is
    ("vm", "vm, cpu", "Fields of a VM"),
    ("vcpu", "vcpu, cpu", "Fields of a vCPU"),
    ("exit", "exit, vcpu-exit", "Fields of an exit reason"),
    ("symbol", "symbol, vcpu-symbol", "Fields of a symbol"),
    ("exit-code", "exit-code", "Fields of guest code that makes exits"),
    ("waited", "waited, vcpu-waited", "Fields of who had the CPU while vCPUs waited"),
    ("slow", "slow", "Fields of a slow exit"),
    ("pmu", "pmu", "Fields of a counter of a guest's PMU"),
    ("host", "host", "Fields of the host"),
    ("cpu", "pcpu", "Fields of a host CPU"),
    ("thread", "thread", "Fields of a thread of a VMM"),
    ("task", "task", "Fields of a task that is no VM's"),
    ("finding", "finding", "Fields of a finding"),
]


def run(*args):
    return subprocess.run([KVMTOP, *args], check=True, capture_output=True, text=True).stdout


def dump(name):
    return [line.split("\t") for line in run("--dump-tables", name).splitlines()]


# --- man page -------------------------------------------------------------------------------------
def roff(text):
    """Text for a line of mdoc: nothing in it is a macro or an escape."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in ".'" else text


def word(text):
    """An argument of a macro: a word that is a macro's name or punctuation stays a word."""
    text = roff(text)
    return f'"{text}"' if " " in text else ("\\&" + text if len(text) <= 3 else text)


# What is written so in the program: no words to begin a sentence with a capital.
AS_IS = {"vmexit,", "idle:", "vmm:", "notice,", "online", "libvirt's", "kvmtop's", "vCPUs"}


def sentence(text):
    if text.split()[0].rstrip(".") not in AS_IS:
        text = text[0].upper() + text[1:]
    return roff(text + "." if text[-1] not in ".!?" else text)


def man_options():
    lines = []
    for name, letter, arg, text in dump("options"):
        if text == "hidden":
            continue
        flags = (f"Fl {letter} , Fl Fl {name}" if letter else f"Fl Fl {name}").replace("-", "\\-")
        lines.append(f".It {flags}" + (f" Ar {arg}" if arg else ""))
        lines.append(sentence(text))
    return lines


def man_commands():
    lines = []
    for name, text in dump("commands"):
        if name:
            lines += [f".It Nm Cm {name}", sentence(text)]
    return lines


def man_tables():
    return [x for name, text in dump("tables") for x in (f".It Cm {word(name)}", sentence(text))]


def man_collectors():
    return [x for name, text in dump("collectors") for x in (f".It Cm {word(name)}", sentence(text))]


def man_fields():
    rows, lines = dump("fields"), []
    for table, names, title in FIELD_TABLES:
        lines += [f".Ss {title} (" + roff(names) + ")", ".Bl -tag -width Ds"]
        for t, field, head, unit, text in rows:
            if t == table:
                lines.append(f".It {word(field)} Pq {word(head)}" +
                             ("" if unit == "text" else f" Bq {word(unit)}"))
                lines.append(sentence(text))
        lines.append(".El")
    return lines


def man_keys():
    return [x for keys, text in dump("keys") for x in (f".It {word(keys)}", sentence(text))]


def man_panes():
    return [x for pane, text in dump("panes") for x in (f".It {word(pane)}", sentence(text))]


def man_page(old):
    parts = {"commands": man_commands, "options": man_options, "tables": man_tables,
             "collectors": man_collectors, "fields": man_fields, "keys": man_keys,
             "panes": man_panes}
    for name, make in parts.items():
        begin, end = f'.\\" BEGIN {name}\n', f'.\\" END {name}\n'
        head, rest = old.split(begin)
        old = head + begin + "\n".join(make()) + "\n" + end + rest.split(end)[1]
    return old


# --- docs -----------------------------------------------------------------------------------------
def fields_page(_old):
    out = ["<!-- SPDX-License-Identifier: GPL-2.0-only -->", "# Every figure and its definition", "",
           "Made from the program's own table by `scripts/generated.py`; `kvmtop --fields help` prints "
           "the same. A figure that", "is not known is `-` or `n/a` on screen and in text, empty in CSV "
           "and `null` in JSON, and no sample of Prometheus: never 0. The rules behind the figures are in [metrics.md](metrics.md).", "",
           "The last column is the metric that the figure is in `--format prometheus`, without `kvmtop_` in front: ratios, seconds and bytes in "
           "place of", "percent, nanoseconds and KiB. LEVEL is `host` (all VMs together), `vm`, `vcpu` or `other` (what is no VM), whatever "
           "the row is of.", ""]
    rows = dump("fields")
    metrics = {(t, f): f"`{name.removeprefix('kvmtop_')}`" for t, f, name in dump("metrics")}
    for table, names, title in FIELD_TABLES:
        out += [f"## {title} (`--table {names}`)", "", "| id | column | unit | definition | metric |", "|---|---|---|---|---|"]
        out += [f"| `{f}` | {h} | {'' if u == 'text' else u} | {text} | {metrics.get((t, f), '')} |"
                for t, f, h, u, text in rows if t == table]
        out.append("")
    return "\n".join(out[:-1]) + "\n"


# --- schema ---------------------------------------------------------------------------------------
def json_type(unit):
    if unit == "text":
        return {"type": ["string", "null"]}
    if unit in ("count", "number", "ns", "KiB"):
        return {"type": ["integer", "null"]}
    return {"type": ["number", "null"]}


def schema(old):
    """Gives each definition its fields; what is required and what is no field stands in the file."""
    s = json.loads(old)
    parts = {"vm": "vm", "vcpu": "vcpu", "exit": "exit", "symbol": "symbol", "code": "exit-code", "slow": "slow",
             "waited": "waited", "pmu": "pmu", "host": "host", "pcpu": "cpu", "thread": "thread", "task": "task", "finding": "finding"}
    skip = {"exit": {"vm", "vcpu", "idle"}, "symbol": {"vm", "vcpu", "domain_guessed"},
            "code": {"vm"}, "slow": {"vm", "at"}, "waited": {"vm", "vcpu"}, "pmu": {"vm", "vcpu"}, "vcpu": {"vm", "vcpu"},
            "host": {"node", "kernel"}, "thread": {"vm"}, "finding": {"for_ns"}}
    for name, table in parts.items():
        props = {k: v for k, v in s["$defs"][name]["properties"].items() if "x-field" not in v}
        for t, field, _head, _unit, text in dump("fields"):
            if t == table and field not in skip.get(name, ()) and field not in props:
                props[field] = {**json_type(_unit), "description": text, "x-field": True}
        s["$defs"][name]["properties"] = props
    return json.dumps(s, indent=1) + "\n"


FILES = {
    "man/kvmtop.1": man_page,
    "docs/fields.md": fields_page,
    "docs/kvmtop.schema.json": schema,
    "contrib/completions/kvmtop.bash": lambda _: run("--completion", "bash"),
    "contrib/completions/_kvmtop": lambda _: run("--completion", "zsh"),
    "contrib/completions/kvmtop.fish": lambda _: run("--completion", "fish"),
}


def main():
    check, stale = "--check" in sys.argv[1:], []
    for name, make in FILES.items():
        path = os.path.join(TOP, name)
        old = ""
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                old = f.read()
        new = make(old)
        if new == old:
            continue
        stale.append(name)
        if not check:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(new)
            print(f"wrote {name}")
    if check:
        for n, name in enumerate(FILES, 1):
            print(f"{'not ok' if name in stale else 'ok'} {n} - {name} is what the tables say")
        print(f"1..{len(FILES)}")
        if stale:
            print("# mend: scripts/generated.py")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
