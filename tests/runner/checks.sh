#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The checks themselves: each finds the fault that it is there for, in a copy of the tree.
. "$TOP/tests/tap.sh"
copy=$TEST_TMP/copy
mkdir -p "$copy/build/obj/ui" "$copy/build/obj/src"
git ls-files -z | tar -c --null -T - | tar -x -C "$copy"
cd "$copy" || exit 1
git init -q . && git add -A

printf '#include "model.h"\n' >ui/made.c
printf '#include "registry.h"\n#include <curses.h>\n' >src/text_made.c
printf '#include "ring.h"\n' >ui/made2.h
touch src/ring.h
out=$(/usr/bin/python3 scripts/check_deps.py)
like "$out" "ui/made.c: model.h: ui may include .* and not model" "a pane that includes the model"
like "$out" "ui/made2.h: ring.h" "a header of ui that includes the ring"
like "$out" "src/text_made.c: in no layer" "a file without a layer"
printf '#include <curses.h>\n' >ui/made.c
out=$(/usr/bin/python3 scripts/check_deps.py)
like "$out" "ui/made.c: <curses.h>: curses is for ui/term_ncurses.c only" "curses.h elsewhere"
printf 'int wrefresh(void *);\nint made(void);\nint made(void) { return wrefresh(0); }\n' >ui/made.c
gcc -c -o build/obj/ui/made.o ui/made.c
printf '#include <stdlib.h>\nvoid h(void);\nvoid h(void) { exit(1); }\n' >src/hist.c
gcc -c -o build/obj/src/hist.o src/hist.c
out=$(/usr/bin/python3 scripts/check_deps.py)
like "$out" "ui/made.c: uses curses: wrefresh" "a curses symbol elsewhere"
like "$out" "src/hist.c: exits or prints: exit" "library code that exits"

{
	printf 'void long_one(int *p)\n{\n'
	for _ in $(seq 90); do printf '\t(*p)++;\n'; done
	printf '}\n'
} >ui/made.c
printf '/* TOD%s: later */\nint x; \n' O >src/made.c
for _ in $(seq 801); do echo "/* a */"; done >src/made2.c
git add -A
out=$(/usr/bin/python3 scripts/check_style.py)
like "$out" "long_one\(\) has 93 lines" "a long function"
like "$out" "src/made2.c: 801 lines" "a long file"
like "$out" "src/made.c:1: left for later" "something left for later"
like "$out" "src/made.c:2: blanks at the end" "blanks at a line's end"
out=$(sh scripts/check_spdx.sh)
like "$out" "src/made.c: no SPDX" "a source without its licence"
sh scripts/check_format.sh >/dev/null 2>&1
is $? 123 "code that is not formatted"
gcc -no-pie -o "$TEST_TMP/soft" -x c - <<<'int main(void) { return 0; }'
out=$(sh scripts/check_hardening.sh "$TEST_TMP/soft")
like "$out" "not ok 1 - PIE" "a program that is not position-independent"
like "$out" "not ok 8 - fortified" "and without fortified calls"
printf 'import os\nprint(nothing)\n' >tests/made.py
git add -A
out=$(sh scripts/check_python.sh)
like "$out" "undefined name 'nothing'" "a name that does not exist"
tap_done
