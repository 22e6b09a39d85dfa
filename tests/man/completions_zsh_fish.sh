#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# needs: cmd:zsh, cmd:fish
# The completions of zsh and fish, in these shells: they load without a word, and complete.
. "$TOP/tests/tap.sh"
export HOME="$TEST_TMP" TERM=xterm XDG_CONFIG_HOME="$TEST_TMP/config"
unset ZDOTDIR

# --- fish: it can be asked ---
fish_words() { # fish_words LINE: what its end is completed to
	fish --no-config -c "source $TOP/contrib/completions/kvmtop.fish; complete -C '$1'" | cut -f1 | paste -sd' '
}

is "$(fish --no-config -c "source $TOP/contrib/completions/kvmtop.fish" 2>&1)" "" "fish: it loads"
is "$(fish_words 'kvmtop --max-o')" "--max-overhead" "fish: an option"
is "$(fish_words 'kvmtop doc')" "doctor" "fish: a command"
is "$(fish_words 'kvmtop --format j')" "json" "fish: a value"
is "$(fish_words 'kvmtop --table vcpu-e')" "vcpu-exit" "fish: a table"
is "$(fish_words 'kvmtop doctor dem')" "" "fish: one command is enough"

# --- zsh: what Tab makes of a line, in an interactive one ---
cat > "$TEST_TMP/zsh-driver" << 'END'
# $1 is the function's folder, $2 where a key writes the line to, the rest are lines.
zmodload zsh/zpty || exit 1
zpty z zsh -f -i
say() { zpty -w z "$1" }
wait_for() { # until the file is there; 10 s
	local i
	for i in {1..200}; do [[ -s $1 ]] && return 0; sleep 0.05; done
	return 1
}
say "PS1=; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D; setopt no_beep no_auto_menu"
say "told() { print -r -- \"\$BUFFER\" > ${(q)2}; BUFFER=; }; zle -N told; bindkey '^X' told; print > ${(q)2}.up"
wait_for $2.up || { print "it does not start"; exit 1; }
for line in "${@:3}"; do
	rm -f $2
	zpty -w -n z "$line"$'\t\C-x'
	wait_for $2 && print -r -- "$(<$2)"
done
zpty -d z
END

zsh_lines() {
	zsh -f "$TEST_TMP/zsh-driver" "$TOP/contrib/completions" "$TEST_TMP/line" "$@"
}

is "$(zsh -f -n "$TOP/contrib/completions/_kvmtop" 2>&1)" "" "zsh: it is a script"
got=$(zsh_lines 'kvmtop --max-o' 'kvmtop doc' 'kvmtop --format j' 'kvmtop --table vcpu-e' 'kvmtop -s steal_so')
is "$(sed -n 1p <<< "$got")" "kvmtop --max-overhead " "zsh: an option"
is "$(sed -n 2p <<< "$got")" "kvmtop doctor " "zsh: a command"
is "$(sed -n 3p <<< "$got")" "kvmtop --format json " "zsh: a value"
is "$(sed -n 4p <<< "$got")" "kvmtop --table vcpu-exit " "zsh: a table"
is "$(sed -n 5p <<< "$got")" "kvmtop -s steal_source " "zsh: a column behind a short option"
tap_done
