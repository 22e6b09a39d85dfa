#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# kernel-support/apply.sh and what build.sh goes by, with a made source package of three files.
. "$TOP/tests/tap.sh"
made=$TEST_TMP/made
src=$made/linux-source-9.9
export KVMTOP_CACHE=$TEST_TMP/cache KERNEL_SOURCE=$made/linux-source-9.9.tar.xz
mkdir -p "$src/mm" "$made/tree/patches/v9.9" "$made/tree/config"
cp kernel-support/apply.sh kernel-support/lib.sh "$made/tree/"
echo "linux-source-9.9 9.9.1" >"$made/tree/patches/v9.9/made-for"
echo CONFIG_A=y >"$made/tree/config/lab.config"
seq 20 >"$src/a.c"
seq 30 50 >"$src/mm/b.c"
echo same >"$src/c.c"
tar -C "$made" -cJf "$KERNEL_SOURCE" linux-source-9.9

patch_of() { # patch_of NUMBER FILE OLD NEW: a mail that changes a line
	printf 'SPDX-License-Identifier: GPL-2.0-only\nFrom: A <a@b>\nDate: Sun, 29 Nov 2026 23:00:00 +0000\n'
	printf 'Subject: [PATCH] change %s\n\nWhy.\n---\n' "$2"
	(cd "$src" && sed "s/^$3\$/$4/" "$2" | diff -u --label "a/$2" --label "b/$2" "$2" -)
	printf -- '-- \n'
}
put() {
	patch_of "$@" >"$made/tree/patches/v9.9/000$1-x.patch"
}
apply() {
	out=$("$made/tree/apply.sh" "$@" 2>"$TEST_TMP/err")
	rc=$?
}
key() {
	bash -c '. "$1/lib.sh"; find_source; build_key' - "$made/tree"
}

put 1 a.c 5 five
put 2 mm/b.c 40 forty
apply
is "$rc $out" "0 $KVMTOP_CACHE/kernel/linux" "it prints the source's folder"
cd "$KVMTOP_CACHE/kernel/linux" || exit 1
is "$(sed -n 5p a.c) $(sed -n 11p mm/b.c)" "five forty" "the patches are in"
touch -d '2020-01-01' a.c mm/b.c c.c
first=$(key)
apply
is "$rc $(stat -c %y a.c mm/b.c c.c | grep -c 2020)" "0 3" "once more: no file is touched"

put 2 mm/b.c 40 quarante
apply
is "$(sed -n 5p a.c) $(sed -n 11p mm/b.c)" "five quarante" "another patch in one's place"
is "$(stat -c %y a.c | cut -c1-4) $(stat -c %y mm/b.c | grep -c 2020)" "2020 0" "only what it changed looks new"
second=$(key)
between "$([ "$first" != "$second" ] && echo 1 || echo 0)" 1 1 "and the kernel's key is another one"
echo CONFIG_B=y >>"$made/tree/config/lab.config"
between "$([ "$(key)" != "$second" ] && echo 1 || echo 0)" 1 1 "as it is with another configuration"
plain=$(key)
echo CONFIG_C=y >"$made/tree/config/debug.config"
is "$(key)" "$plain" "the debug kernel's configuration is none of the ordinary one's"
between "$([ "$(KERNEL_DEBUG=1 key)" != "$plain" ] && echo 1 || echo 0)" 1 1 "and makes another key"

put 3 c.c same other
sed -i 's/^-same$/-else/' "$made/tree/patches/v9.9/0003-x.patch"
apply
like "$rc $(cat "$TEST_TMP/err")" "^1 .*0003-x.patch does not fit .* made for linux-source-9.9 9.9.1" \
	"a patch that does not fit is named, and what the series was made for"
rm "$made/tree/patches/v9.9/0003-x.patch"
apply
is "$rc $(cat c.c) $(sed -n 5p a.c)" "0 same five" "and nothing of it stays"
rm "$made/tree/patches/v9.9/0001-x.patch"
apply
is "$(sed -n 5p a.c) $(sed -n 11p mm/b.c)" "5 quarante" "a patch that is gone is taken back"

cd "$TOP" || exit 1
apply --am
like "$rc $out" "^0 .* change mm/b.c$" "git am takes them, the licence in front of the header and all"
sed -i '/^From:/d' "$made/tree/patches/v9.9/0002-x.patch"
apply --am
is "$([ "$rc" != 0 ] && echo refused)" refused "and refuses one without an author"
KERNEL_SOURCE=$made/linux-source-8.8.tar.xz
cp "$made/linux-source-9.9.tar.xz" "$KERNEL_SOURCE"
apply
like "$rc $(cat "$TEST_TMP/err")" "^1 .*no patches for linux-source-8.8: there are v9.9" "another version: which there are"
tap_done
