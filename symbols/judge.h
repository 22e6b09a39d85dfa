// SPDX-License-Identifier: GPL-2.0-only
/* Are these the symbols of the kernel that the guest runs now? What it does is held against them.
 */
#ifndef KVMTOP_JUDGE_H
#define KVMTOP_JUDGE_H

#include "load.h"

/* All zero: nothing seen yet. */
struct judge {
	unsigned samples, hits; /* of the kernel's own code; on a symbol */
	unsigned halts, idle; /* HLT exits; in a function that halts */
};

/* What may be expected of a map. */
struct judged {
	const struct symmap *map;
	bool linux_idle; /* it has Linux' idle loop, so that HLT elsewhere says something */
	bool complete; /* it has the modules too */
};
void judge_add(struct judge *j, const struct judged *of, const struct symbols_evidence *e);
/* Enough was seen to say no. Forgets samples now and then: a guest may boot anew at any time. */
bool judge_contradicts(struct judge *j);
/* The status that says so. */
void judge_text(const struct judge *j, const char *source, const char *mend, struct loaded *out);

#endif
