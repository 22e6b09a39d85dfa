#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# pyflakes over every tracked Python file: names that do not exist, imports that nobody uses.
set -eu
git ls-files -z '*.py' tests/run | xargs -0 pyflakes3
