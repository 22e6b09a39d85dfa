#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The man page's lists, the completions, docs/fields.md and the schema are what the tables say.
exec /usr/bin/python3 "$TOP/scripts/generated.py" --check
