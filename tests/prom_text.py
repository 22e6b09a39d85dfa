# SPDX-License-Identifier: GPL-2.0-only
"""Prometheus text 0.0.4, read more strictly than Prometheus does: parse() raises Bad at whatever is no
exposition, or would be taken for something else than was meant, and at what `promtool check metrics`
complains of."""

import math
import re
from typing import NamedTuple

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")  # colons are for recording rules
LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
NUMBER = re.compile(r"-?(\d+(\.\d+)?(e[+-]\d+)?)")  # no NaN, no Inf: what is not known has no sample
TYPES = ("counter", "gauge", "histogram", "summary")
# Units, in parts of a name, that are no base units; those of time as letters at its end.
NOT_BASE = {"percent", "pct", "milliseconds", "microseconds", "nanoseconds", "minutes", "hours", "days", "kilobytes",
            "kibibytes", "megabytes", "mebibytes", "bits"}
SHORT = {"s", "ms", "us", "ns", "sec", "min", "kb", "kib", "mb", "b", "hz"}


class Bad(Exception):
    pass


class Family(NamedTuple):
    type: str
    help: str
    samples: dict  # {frozenset of (label, value): number}


def need(condition, what, line):
    if not condition:
        raise Bad(f"{what}: {line!r:.300}")


def expositions(text):
    """Those of a stream: each ends with # EOF. What is behind the last one must be nothing."""
    *whole, rest = text.split("# EOF\n")
    need(not rest, "not whole", rest)
    return whole


def unescape(text, quoted, line):
    out, i = [], 0
    while i < len(text):
        c = text[i]
        if c == "\\":
            i += 1
            known = {"\\": "\\", "n": "\n", '"': '"'} if quoted else {"\\": "\\", "n": "\n"}
            need(text[i:i + 1] in known, "an escape that there is none of", line)
            c = known[text[i]]
        out.append(c)
        i += 1
    return "".join(out)


def labels_of(text, line):
    """{a="b",c="d"} without the braces."""
    labels, i = {}, 0
    while i < len(text):
        m = LABEL.match(text, i)
        need(m, "no name of a label", line)
        need(text[m.end():m.end() + 2] == '="', "no value of a label", line)
        end = m.end() + 2
        while end < len(text) and text[end] != '"':
            end += 2 if text[end] == "\\" else 1
        need(end < len(text), "a value without an end", line)
        need(m[0] not in labels, "a label twice", line)
        labels[m[0]] = unescape(text[m.end() + 2:end], True, line)
        need(labels[m[0]], "an empty label, which is none", line)
        i = end + 1
        if i < len(text):
            need(text[i] == "," and i + 1 < len(text), "no comma between labels", line)
            i += 1
    return labels


def sample(line):
    m = NAME.match(line)
    need(m, "no name", line)
    rest, labels = line[m.end():], {}
    if rest.startswith("{"):
        end = 1
        while end < len(rest) and rest[end] != "}":
            if rest[end] == '"':  # a brace in a label's value is none
                end += 1
                while end < len(rest) and rest[end] != '"':
                    end += 2 if rest[end] == "\\" else 1
            end += 1
        need(rest[end:end + 1] == "}", "labels without an end", line)
        need(end > 1, "braces around nothing", line)
        labels, rest = labels_of(rest[1:end], line), rest[end + 1:]
    # A third word would be a time, which node_exporter's textfile collector refuses.
    need(rest.startswith(" ") and NUMBER.fullmatch(rest[1:]), "no number, or more than one", line)
    value = float(rest[1:])
    need(math.isfinite(value), "not finite", line)
    return m[0], frozenset(labels.items()), value


def lint(name, family):
    """What promtool check metrics says, and that units are base units."""
    parts = name.split("_")
    need(name == name.lower() and name.startswith("kvmtop_"), "not a name of ours", name)
    need(family.help, "no help", name)
    need((family.type == "counter") == name.endswith("_total"), "_total is for counters, and for all of them", name)
    need(parts[-1] not in ("count", "sum", "bucket", "info") or (parts[-1] == "info" and family.type == "gauge"),
         "an ending of another type", name)
    need(not set(parts) & (NOT_BASE | set(TYPES)), "a type or a unit that is no base unit in it", name)
    need(not SHORT & {parts[-1], parts[-2] if family.type == "counter" else ""}, "an abbreviated unit", name)
    for labels, value in family.samples.items():
        names = {k for k, v in labels}
        need(not names & {"le", "quantile", "job", "instance"}, "a label that Prometheus sets", labels)
        need(not parts[-1] == "info" or value == 1, "an info that is not 1", labels)
        need(family.type != "counter" or value >= 0, "a counter below 0", labels)


def head(line, families):
    m = re.fullmatch(r"# HELP ([^ ]+) (.+)", line)
    need(m and NAME.fullmatch(m[1]), "no # HELP", line)
    need(m[1] not in families, "a family twice, or not in one piece", line)
    return m[1], unescape(m[2], False, line)


def parse(text):
    """{name: Family} of one exposition, without its # EOF."""
    families, lines, i = {}, text.split("\n"), 0
    need(lines.pop() == "", "no newline at the end", text[-80:])
    for c in text:
        need(c == "\n" or (c.isprintable() or c in "\u00a0\u3000"), "a character that is not printable", c)
    while i < len(lines):
        name, told = head(lines[i], families)
        need(i + 1 < len(lines), "no # TYPE", lines[i])
        m = re.fullmatch(f"# TYPE {name} ({'|'.join(TYPES)})", lines[i + 1])
        need(m, "no # TYPE behind its # HELP", lines[i + 1])
        family, i = Family(m[1], told, {}), i + 2
        while i < len(lines) and not lines[i].startswith("#"):
            got, labels, value = sample(lines[i])
            need(got == name, "a sample of another family", lines[i])
            need(labels not in family.samples, "a series twice", lines[i])
            family.samples[labels] = value
            i += 1
        need(family.samples, "a family of nothing", name)
        lint(name, family)
        families[name] = family
    # OpenMetrics, which an exporter may be asked for, calls a counter without its _total.
    bare = [x.removesuffix("_total") for x in families]
    need(len(set(bare)) == len(bare), "two families of one name in OpenMetrics", sorted(bare))
    return families


def value(families, name, **labels):
    """Of the one series that has these labels, and perhaps others; None where there is none."""
    want = set(labels.items())
    found = [v for k, v in families[name].samples.items() if want <= set(k)] if name in families else []
    need(len(found) < 2, "several series", (name, labels))
    return found[0] if found else None
