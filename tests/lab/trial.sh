#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# In the lab (run.sh): whether guests do there what their programs say, with nobody watching. Two run at once, again
# and again, as the tests' guests do; a lab that goes wrong here, or does not come to the end of this, is none.
set -eu
run=$BUILD/guests/tinyvm-run
for _ in 1 2 3 4 5 6; do
	"$run" -n -c 2 -l 6 "out:1200 mmior:300 mmiow:300 rdmsr:400 cpuid:500" >/tmp/trial.1 &
	first=$!
	"$run" -n -m user -e 1500 -l inf "out:10 cpuid:10" >/tmp/trial.2 &
	wait $!
	wait $first
	# 6 times 1,200, and the one that ends it
	n=$(grep -c '"out":7200,.*"port_out":7201,"port_in":0,"mmio_read":1800,"mmio_write":1800}' /tmp/trial.1) || :
	[ "$n" = 2 ] || {
		cat /tmp/trial.1
		exit 1
	}
done
