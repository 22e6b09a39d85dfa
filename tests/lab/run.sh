#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Runs a script inside the lab: an emulated AMD host (QEMU without KVM, SVM in the emulated CPU) on
# which kvm_entry, kvm_exit and all the rest really fire, whatever machine this is.
#
#   tests/lab/run.sh [--kernel BZIMAGE --modules DIR] [--guest-kernel BZIMAGE] [--results DIR] [--seconds N]
#                    [--silence N] [--once] [--cpu MODEL] [--append WORD] SCRIPT [ARG…]
#
# Without --kernel it boots Debian's own, fetched and unpacked into build/lab/, never installed. --cpu
# is QEMU's -cpu, --append goes to the kernel's command line. The lab's root is this machine's root
# file system, read-only, so every program here runs there too; /tmp and /run are empty, $RESULTS in
# the lab is DIR here (build/lab/results), $LAB_KERNEL (or $LAB_BZIMAGE, which can move itself: KASLR)
# and $LAB_INITRD are what a QEMU guest in it boots (tests/lab_guests.py). SCRIPT's output is printed as it comes and its exit status is ours; 124: the
# time was up, 125: the lab did not start. $LAB_THREADS: multi or shared (choose_threads); shared has twice the seconds.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
cache=$top/build/lab
kernel='' guest_kernel='' cpu=max,-la57 append='' modules='' results=$cache/results seconds=600
monitor=$cache/monitor # .in, .out: QEMU's
# Without a line for so long the lab is taken for dead; it says something every 3 s.
silence=40
# The threads of the two emulated CPUs: `multi` (a CPU of this machine each) or `shared` (one for both). See choose_threads.
threads=${LAB_THREADS:-}
tries="1 2" # of a lab that goes silent

# In the order in which they need each other; what is built into a kernel has no file.
MODULES="virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci netfs fscache
9pnet 9pnet_virtio 9p irqbypass ccp kvm kvm-amd"
# The guests': for their second port, and for what a guest does to its TSC.
GUEST_MODULES="virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_console msr"

die() {
	echo "lab: $*" >&2
	exit 125
}

while [ $# -gt 0 ]; do
	case $1 in
	--kernel) kernel=$(realpath "$2") && shift 2 ;;
	--modules) modules=$(realpath "$2") && shift 2 ;;
	--guest-kernel) guest_kernel=$(realpath "$2") && shift 2 ;;
	--silence) silence=$2 && shift 2 ;;
	--once) tries=1 && shift ;;
	--cpu) cpu=$2 && shift 2 ;;
	--append) append=$2 && shift 2 ;;
	--results) results=$(realpath -m "$2") && shift 2 ;;
	--seconds) seconds=$2 && shift 2 ;;
	-*) die "unknown option $1" ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || die "which script?"
for tool in qemu-system-x86_64 busybox dpkg-deb; do
	command -v $tool >/dev/null || die "no $tool: run scripts/deps.sh lab"
done

# Debian's kernel image starts by unpacking itself, slowly under emulation; the kernel proper can be
# booted as it is (PVH). Where it is not found as expected, the image will do.
unpack_kernel() { # from $1 to $2
	local at magic
	magic=$(printf '\3757zXZ')
	at=$(LC_ALL=C grep -abom1 "$magic" "$1" | cut -d: -f1 | head -n 1)
	# The image goes on behind the compressed part, which xz does not like.
	[ -n "$at" ] && tail -c "+$((at + 1))" "$1" | xz -qdc --single-stream >"$2.new" 2>/dev/null || :
	if [ "$(head -c 4 "$2.new" | tail -c 3)" = ELF ]; then
		mv "$2.new" "$2"
	else
		cp "$1" "$2"
	fi
}

download_kernel() { # Debian's newest, into the folder $1
	local package
	package=$(apt-cache depends linux-image-amd64 | sed -n 's/^ *Depends: //p' | head -n 1)
	[ -n "$package" ] || return 1
	echo "lab: fetching $package" >&2
	(cd "$1" && apt-get -qq download "$package" 2>&1)
}

# apt's lists may be missing, or so old that the package they name is gone.
update_lists() {
	local as_root=''
	[ "$(id -u)" = 0 ] || as_root="sudo -n"
	$as_root apt-get -qq update
}

fetch_kernel() {
	local deb
	rm -rf "$cache/kernel" "$cache/kernel.new"
	mkdir -p "$cache/kernel.new"
	download_kernel "$cache/kernel.new" || { update_lists && download_kernel "$cache/kernel.new"; } ||
		die "cannot fetch the kernel that linux-image-amd64 depends on, nor with new lists"
	for deb in "$cache"/kernel.new/*.deb; do
		dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$cache/kernel.new" ./boot ./lib/modules
		rm "$deb"
	done
	unpack_kernel "$cache"/kernel.new/boot/vmlinuz-* "$cache/kernel.new/vmlinux"
	mv "$cache/kernel.new" "$cache/kernel"
}

put_modules() { # $2… into the initramfs $1; their order goes into its file `modules`
	local d=$1 m path
	: >"$d/modules"
	for m in "${@:2}"; do
		path=$(find "${modules:-/nowhere}" -name "$m.ko" -print -quit 2>/dev/null || :)
		[ -n "$path" ] || continue
		cp "$path" "$d/"
		echo "$m.ko" >>"$d/modules"
	done
}

make_initramfs() {
	local d=$cache/initramfs
	rm -rf "$d"
	mkdir -p "$d"/{bin,proc,sys,dev,host,results}
	cp "$(command -v busybox)" "$d/bin/busybox"
	cp "$top/tests/lab/init.sh" "$d/init"
	chmod 755 "$d/init"
	# shellcheck disable=SC2086 # words are wanted
	put_modules "$d" $MODULES
	pack "$d" initramfs.cpio
}

pack() { # the folder $1, which goes, into an initramfs $2
	(cd "$1" && find . | busybox cpio -o -H newc 2>/dev/null) >"$cache/$2"
	rm -rf "$1"
}

# For the guests: busybox and our programs. Without those there are no QEMU guests.
make_guest_initramfs() {
	local d=$cache/guest programs=$top/build/lab/programs
	rm -rf "$d" "$cache/guest.cpio"
	[ -x "$programs/load" ] || return 0
	mkdir -p "$d"/{bin,proc,dev}
	cp "$(command -v busybox)" "$d/bin/busybox"
	cp "$programs"/{load,write_tsc} "$d/"
	cp "$top/tests/lab/guest/init.sh" "$d/init"
	cp "$top/tests/lab/guest/shell.sh" "$d/shell"
	chmod 755 "$d/init"
	# shellcheck disable=SC2086 # words are wanted
	[ "$guest_kernel" != "$kernel" ] || put_modules "$d" $GUEST_MODULES
	pack "$d" guest.cpio
}

qemu='' # its process id
stop_qemu() {
	[ -n "$qemu" ] || return 0
	kill "$qemu" 2>/dev/null || :
	wait "$qemu" 2>/dev/null || :
	qemu=''
	rm -f "$monitor".{in,out}
}
trap stop_qemu EXIT
trap 'exit 130' INT TERM

# QEMU 7.2 has a thread for each emulated CPU, and races: between CPUs that both run a guest, between one that writes
# code and one that translates it. On most machines they are lost now and then. On some (seen on a Skylake, on which a
# system call takes five times as long) guests run astray, or the lab's kernel finds its stacks overwritten, within the
# first minute, with nobody watching, where both threads really run at once: with a guest on each CPU, bound to it, at
# once; with both guests on one of them, never. There QEMU gets one CPU of this machine, so that its threads take turns;
# it is half as fast. Which it is to be is tried once (trial.sh).
choose_threads() {
	[ -z "$threads" ] || return 0
	threads=multi
	[ -x "${BUILD:-$top/build}/guests/tinyvm-run" ] || return 0
	if [ ! -s "$cache/threads" ]; then
		LAB_THREADS=multi "$top/tests/lab/run.sh" --once --seconds 90 --silence 20 --results "$cache/trial" \
			"$top/tests/lab/trial.sh" >"$cache/trial.log" 2>&1 || threads=shared
		echo "$threads" >"$cache/threads"
	fi
	read -r threads <"$cache/threads"
	[ "$threads" = multi ] || echo "lab: one CPU for both of its own: with two, guests went wrong here (trial.log)" >&2
}

# The kernel's clocks go by the TSC; measured while it boots on a busy machine it may be far off.
tsc_option() {
	local khz
	khz=$("$top/build/tools/tsc_khz" 2>/dev/null) || return 0
	[ -z "$khz" ] || echo "tsc_early_khz=$khz"
}

# What binds QEMU to the last of the CPUs that we may use, if to one.
one_cpu() {
	local cpus
	[ "$threads" = shared ] || return 0
	cpus=$(taskset -cp $$)
	echo "taskset -c ${cpus##*[ ,-]}"
}

start_qemu() {
	local pipe=$cache/console.$$ input=$cache/input.$$
	rm -f "$pipe" "$input" "$monitor".{in,out}
	mkfifo "$pipe" "$input" "$monitor".{in,out}
	exec 7<>"$input"
	# shellcheck disable=SC2046 # words are wanted
	setpriv --pdeathsig KILL $(one_cpu) qemu-system-x86_64 -accel tcg,thread=multi,tb-size=512 -cpu "$cpu" -smp 2 -m 3G -M pc \
		-nodefaults -no-user-config -display none -no-reboot -serial stdio \
		-chardev "pipe,id=monitor,path=$monitor" -mon monitor \
		-kernel "$kernel" -initrd "$cache/initramfs.cpio" -append "console=ttyS0,115200 quiet \
panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check random.trust_cpu=on nowatchdog apic_extnmi=all $(tsc_option) $append" \
		-virtfs local,path=/,mount_tag=host,security_model=none,multidevs=remap,readonly=on \
		-virtfs "local,path=$top,mount_tag=top,security_model=none,multidevs=remap,readonly=on" \
		-virtfs "local,path=$results,mount_tag=results,security_model=none" \
		<&7 >"$pipe" 2>&1 7>&- 9>&- &
	qemu=$!
	exec 8<"$pipe"
	rm -f "$pipe" "$input"
}

# For whoever wonders why it hangs: where its CPUs are, and which interrupts their APICs have (IRR: not yet served).
where_it_is() {
	printf '%s\n' 'info registers -a' 'cpu 0' 'info lapic' 'cpu 1' 'info lapic' >"$monitor.in"
	{ timeout 3 cat "$monitor.out" || :; } | LC_ALL=C tr -d '\r' | LC_ALL=C sed -n 's/^\(CPU#\|RIP\|dumping\|IRR\|ISR\)/lab:   &/p' >&2
}

# How long the emulated CPUs (and QEMU's other threads) waited for real ones so far, in ns: a test
# that compares times wants to know that ($RESULTS of the boot, .waited). What a thread waited that has ended since is
# missing in the sum. The file is never seen half-written.
note_waits() {
	local f wait sum=0
	for f in /proc/"$qemu"/task/*/schedstat; do
		read -r _ wait _ <"$f" && sum=$((sum + wait))
	done 2>/dev/null
	[ $((sum / 1000000000)) -gt "$waited" ] || return 0
	echo "$sum" >"$results/.waited.new"
	mv "$results/.waited.new" "$results/.waited"
	waited=$((sum / 1000000000))
}

# QEMU's emulation of SVM clears a bit in a CPU's word of pending interrupts at each exit of a guest (do_vmexit in 7.2),
# without the lock under which its other threads set bits there. That can lose the notice of an interrupt; another one
# brings none where the CPU's kernel believes one to be on its way already. An NMI (each CPU gets it:
# apic_extnmi=all) leaves the guest whatever is pending, and then all is taken.
wake_up() {
	echo nmi >"$monitor.in"
	woken="an NMI"
}

# Another way to go silent: one CPU takes a breakpoint (asm_exc_int3) for ever where the other, which waits for a lock
# of its, has patched the kernel's text. No interrupt helps there.
translate_anew() {
	echo "gdbserver unix:$cache/gdb,server=on,wait=off" >"$monitor.in"
	sleep 1
	timeout 10 python3 "$top/tests/qemu_retranslate.py" "$cache/gdb" >&2 || :
	printf '%s\n' "gdbserver none" cont >"$monitor.in"
	rm -f "$cache/gdb"
	woken="new translation"
}

# What the lab says next, in $line; each second without it is interrupted, by a key on its console for when all its
# CPUs wait. 0; 1: it is off; 2: it says nothing for too long.
next_line() {
	local r quiet=0 part=''
	while :; do
		r=0
		IFS= read -r -t 1 line <&8 || r=$?
		line=$part$line
		case $r$line in
		0*"Uhhuh. NMI received"* | 0*"Dazed and confused"*) # what an NMI makes one CPU say, whatever the others do
			printf '%s\n' "${line%$'\r'}"
			part=''
			continue
			;;
		esac
		[ "$r" -gt 128 ] || return "$((r != 0))"
		part=$line quiet=$((quiet + 1))
		[ "$quiet" -lt "$silence" ] || return 2
		echo >&7
		case $quiet in
		"$((silence / 4))" | "$((silence * 5 / 8))") wake_up ;; # a debug kernel takes its time, and has a longer silence
		"$((silence * 3 / 8))" | "$((silence * 3 / 4))") translate_anew ;;
		esac
	done
}

# Seconds that it may take: beside others' work, half of what its two CPUs waited for real ones more, to a bound.
allowed() {
	local more=$((waited / 2))
	[ "$more" -lt $((2 * seconds)) ] || more=$((2 * seconds))
	echo $((seconds + more))
}

# One CPU may go silent alone: the rest goes on, but for what waits for it, and that is a test which takes too long.
# Each says something of its own every 3 s. Time and again, as the lab is not lost.
watch_cpus() {
	local cpu silent
	for cpu in "${!heard[@]}"; do
		silent=$(((SECONDS - heard[cpu]) % 24))
		if [ "$silent" -ge 18 ] && [ "${helped[cpu]}" = "an NMI" ]; then
			translate_anew
		elif [ "$silent" -ge 12 ] && [ "$silent" -lt 18 ] && [ "${helped[cpu]}" != "an NMI" ]; then
			wake_up
		else
			continue
		fi
		helped[cpu]=$woken woken=''
	done
}

# It was CPU $1 that said something.
hear() {
	[ "${#heard[@]}" -ne 0 ] || heard=("$SECONDS" "$SECONDS") helped=('' '')
	[ -z "${helped[$1]}" ] || echo "lab: CPU $1 was silent for $((SECONDS - heard[$1])) s, until ${helped[$1]}" >&2
	heard[$1]=$SECONDS helped[$1]=''
}

# Prints what the lab says until it is off. 0: it is off; 1: it went silent; 124: the time is up.
follow() {
	local line r waited=0 woken='' start=$SECONDS
	local heard=() helped=() # by CPU: when, and what was done since
	while :; do
		r=0
		next_line || r=$?
		line=${line%$'\r'}
		case $line in
		*"lab-alive "[01]*)
			line=${line##*lab-alive }
			hear "${line:0:1}"
			note_waits
			;;
		'') ;;
		*)
			case $line in *"Kernel panic"* | *"BUG: "* | *"Oops: "*) crash=$line ;; esac
			printf '%s\n' "$line"
			;;
		esac
		if [ -n "$woken" ] && [ "$r" -ne 2 ]; then
			echo "lab: it was silent until $woken" >&2
			heard=() # its CPUs were in that as well
		fi
		woken=''
		[ "$r" -eq 2 ] && return 1
		[ "$r" -eq 1 ] && return 0
		watch_cpus
		[ $((SECONDS - start)) -lt "$(allowed)" ] || return 124
	done
}

# What the lab runs: SCRIPT with its words.
write_command() {
	{
		printf 'cd %q\nexport RESULTS=/tmp/results TOP=%q BUILD=%q HOME=/tmp TERM=xterm\n' \
			"$top" "$top" "${BUILD:-$top/build}"
		printf 'export LAB_THREADS=%s\n' "$threads"
		printf 'export LAB_KERNEL=%q LAB_BZIMAGE=%q LAB_INITRD=%q\n' "$guest_kernel" "${bzimage:-$guest_kernel}" "$cache/guest.cpio"
		printf 'exec'
		[ -x "$1" ] || printf ' bash'
		printf ' %q' "$(realpath "$1")" "${@:2}"
		echo
	} >"$results/.command"
}

mkdir -p "$cache" "$results"
choose_threads
[ "$threads" = multi ] || seconds=$((2 * seconds))
exec 9>"$cache/lock"
flock 9 # one lab at a time: two would take each other's CPUs
if [ -z "$kernel" ]; then
	[ -d "$cache/kernel" ] || fetch_kernel
	kernel=$cache/kernel/vmlinux modules=$cache/kernel/lib/modules
	bzimage=$(echo "$cache"/kernel/boot/vmlinuz-*)
fi
guest_kernel=${guest_kernel:-$kernel}
make_initramfs
make_guest_initramfs
write_command "$@"
printf '%s\n' "$top" >"$results/.top"

for try in $tries; do
	rm -f "$results"/.{status,waited}
	start_qemu
	r=0 crash='' # what its kernel said of one
	follow || r=$?
	case $r in
	0) [ -z "$crash" ] && [ ! -s "$results/.status" ] || break ;; # by a fault of the emulation
	1) where_it_is ;;
	*) break ;;
	esac
	stop_qemu
	exec 8<&- 7>&-
	[ $r -eq 0 ] && echo "lab: it went off by itself" >&2 || echo "lab: no sign of life for $silence s" >&2
	[ "$tries" != 1 ] && [ "$try" -eq 1 ] && echo "lab: starting it once more" >&2
done
stop_qemu
if [ $r -eq 124 ]; then
	echo "lab: not at its end after $SECONDS s" >&2
	exit 124
fi
[ -s "$results/.status" ] || die "it ended without a result"
status=$(cat "$results/.status")
rm -f "$results/.status" "$results/.command" "$results/.top" "$results/.waited"
exit "$status"
