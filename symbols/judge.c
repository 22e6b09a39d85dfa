// SPDX-License-Identifier: GPL-2.0-only
/* Symbols against what a guest does (judge.h). */
#include <string.h>

#include "judge.h"

#define ENOUGH 64 /* samples */
#define LEAST_SHARE 80 /* percent of them on a symbol: the right kernel has nearly all */
#define ENOUGH_HALTS 4
/* Where x86-64 has the kernel itself; above are modules, which may be missing here by right. */
#define X86_KERNEL 0xffffffff80000000u
#define X86_MODULES 0xffffffffc0000000u

/* Linux halts in few places, and all of them say so. */
static bool halts(const char *name)
{
	static const char *const words[] = {"halt", "hlt", "idle", "wait", "dead", "stop_this_cpu"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(name, words[i]))
			return true;
	return false;
}

/* Would the kernel of this map have a symbol there, if it has code there at all? */
static bool is_own(const struct judged *of, uint64_t addr)
{
	const struct symmap_part *part;
	bool x86 = symmap_parts(of->map, &part) && part[0].lo >= X86_KERNEL &&
		   part[0].lo < X86_MODULES;

	return x86 ? addr >= X86_KERNEL && addr < X86_MODULES : of->complete;
}

void judge_add(struct judge *j, const struct judged *of, const struct symbols_evidence *e)
{
	struct symbol s;
	bool hit = symmap_lookup(of->map, e->addr, &s);

	if (!is_own(of, e->addr))
		return;
	j->samples++;
	j->hits += hit;
	if (e->kind == EVIDENCE_HLT && of->linux_idle) {
		j->halts++;
		j->idle += hit && halts(s.name);
	}
}

bool judge_contradicts(struct judge *j)
{
	if (j->halts >= ENOUGH_HALTS && !j->idle)
		return true;
	if (j->samples < ENOUGH)
		return false;
	if (j->hits * 100 < j->samples * LEAST_SHARE)
		return true;
	*j = (struct judge){0};
	return false;
}

void judge_text(const struct judge *j, const char *source, const char *mend, struct loaded *out)
{
	if (j->halts >= ENOUGH_HALTS && !j->idle)
		loaded_status(
			out, SYMBOLS_REFUSED, source, mend,
			"the guest halts where these symbols have no idle loop: it was booted "
			"anew or runs another kernel");
	else
		loaded_status(
			out, SYMBOLS_REFUSED, source, mend,
			"of %u addresses of the guest's kernel only %u fall on these symbols: "
			"it was booted anew or runs another kernel",
			j->samples, j->hits);
}
