// SPDX-License-Identifier: GPL-2.0-only
/* What a test of real guests needs, and its skip where that is not there. After <cmocka.h>. */
#ifndef KVMTOP_TEST_NEEDS_GUESTS_H
#define KVMTOP_TEST_NEEDS_GUESTS_H

#include <stdbool.h>
#include <unistd.h>

#define TRACEFS "/sys/kernel/tracing"

static inline bool able(void)
{
	return geteuid() == 0 && access("/dev/kvm", R_OK | W_OK) == 0 &&
	       access(TRACEFS "/events/kvm", F_OK) == 0;
}

/* For the first line of a test; tests/run takes the message for the reason of the skip. */
#define NEEDS_GUESTS                                                                               \
	do {                                                                                       \
		if (!able()) {                                                                     \
			print_message("# needs:root,kvm,tracefs\n");                               \
			skip();                                                                    \
		}                                                                                  \
	} while (0)

#endif
