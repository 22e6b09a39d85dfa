#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=dash
# The lab's first process (tests/lab/run.sh makes its initramfs): modules, file systems, the script,
# off. busybox alone; a process is expensive under emulation.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
stty -F /dev/ttyS0 -opost -echo 2>/dev/null # run.sh has a key pressed now and then

off() {
	echo "lab: $*"
	sync
	poweroff -f
}

while read -r m; do
	case $m in
	kvm-amd.ko) insmod "/$m" nested=0 || off "cannot load $m" ;;
	*) insmod "/$m" || off "cannot load $m" ;;
	esac
done </modules

p9=trans=virtio,version=9p2000.L,msize=131072
mount -t 9p -o $p9,ro,cache=loose host /host || off "cannot mount the host's files"
mount -t 9p -o $p9 results /results || off "cannot mount the results"
mount -t proc proc /host/proc
mount -t sysfs sysfs /host/sys
mount -t devtmpfs dev /host/dev
mount -t tmpfs shm /host/dev/shm 2>/dev/null
mkdir -p /dev/pts && mount -t devpts -o ptmxmode=666 pts /host/dev/pts
for d in tmp run; do
	mount -t tmpfs -o mode=1777 $d /host/$d
done
mkdir /host/tmp/results
mount --bind /results /host/tmp/results
mount -t tracefs tracefs /host/sys/kernel/tracing
mount -t debugfs debugfs /host/sys/kernel/debug
read -r top </results/.top
if [ ! -d "/host$top" ]; then # under /tmp, which is empty here
	mkdir -p "/host$top"
	mount -t 9p -o $p9,ro,cache=loose top "/host$top"
fi
ip link set lo up 2>/dev/null

for cpu in 0 1; do # one may go silent alone
	taskset $((1 << cpu)) sh -c "while sleep 3; do echo lab-alive $cpu; done" &
done
chroot /host /bin/bash /tmp/results/.command </dev/null
echo $? >/results/.status
sync
poweroff -f
