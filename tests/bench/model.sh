#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The model alone: time an event, memory a vCPU and time a commit, against product.md's limits.
exec "$BUILD/bench/bench_model" "$@"
