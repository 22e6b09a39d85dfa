#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Makes docs/screen.png, the README's picture, from the program itself: `kvmtop demo` runs in a terminal
# of its own on a host that is named node17, and what the terminal shows is drawn by a browser.
# Root (demo), tmux, aha and chromium. `make` comes first.
# screenshot.sh [FILE.png [COLUMNSxROWS [dark|light [KEY…]]]]
# KEY: keys as tmux names them, pressed one after the other (5: the pane Steal) before the picture is taken.
# SETTLE=SECONDS: how long after the keys (40: the graphs have something to show).
set -eu
out=${1:-docs/screen.png} size=${2:-100x30} theme=${3:-dark}
if [ $# -le 3 ]; then set -- 5; else shift 3; fi
kvmtop=${KVMTOP:-$PWD/build/kvmtop}
for t in tmux aha chromium unshare; do
	command -v $t >/dev/null || { echo "screenshot needs $t: apt-get install tmux aha chromium" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "screenshot needs root, as kvmtop demo does" >&2; exit 1; }
cols=${size%x*} rows=${size#*x}
case $theme in
dark) fgbg='15;0' fg=d0d0d0 bg=101418 black=--black ;;
light) fgbg='0;15' fg=202020 bg=ffffff black= ;;
*) echo "screenshot: '$theme': give dark or light" >&2; exit 2 ;;
esac
dir=$(mktemp -d)
mux() { tmux -L "kvmtop-shot-$$" -f /dev/null "$@"; }
trap 'mux kill-server 2>/dev/null || :; rm -rf "$dir"' EXIT

# Only the demo's guests: other guests of this host are nobody's business. No settings of the user's.
mux new-session -d -x "$cols" -y "$rows" \
	"unshare --uts sh -c 'hostname node17; XDG_CONFIG_HOME=$dir COLORFGBG=\"$fgbg\" exec \"$kvmtop\" demo --color=256 -M /^demo-/'"
sleep 3
for k in "$@"; do
	mux send-keys "$k"
	sleep 1
done
sleep "${SETTLE:-40}"
mux capture-pane -epN >"$dir/screen"
mux capture-pane -p | grep -q ' 3 VM ' || echo "note: other guests run here, and the head counts them" >&2
mux send-keys q # ends the guests too
sleep 1

{
	printf '<meta charset="utf-8"><style>body{margin:0;padding:12px;background:#%s;color:#%s}' $bg $fg
	printf 'pre{margin:0;font:16px/19px "DejaVu Sans Mono",monospace}</style><pre>'
	aha $black --no-header <"$dir/screen"
	printf '</pre>'
} >"$dir/screen.html"
# A column of this font is 0.602 of its size wide.
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$dir/profile" \
	--window-size=$((cols * 9633 / 1000 + 26)),$((rows * 19 + 24)) \
	--screenshot="$dir/screen.png" "file://$dir/screen.html" >"$dir/log" 2>&1 ||
	{ tail -5 "$dir/log" >&2; exit 1; }
mv "$dir/screen.png" "$out"
