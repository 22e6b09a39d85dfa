// SPDX-License-Identifier: GPL-2.0-only
/*
 * Merges the ftrace texts of a host and of guests by the host's TSC: which offset was in force on
 * which vCPU at which moment, and the one order that follows.
 */
#ifndef KVMTOP_MERGE_H
#define KVMTOP_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracetext.h"
#include "tsc.h"

struct out;

#define MERGE_ALL_VCPUS (-1)
#define MERGE_PAGE 256 /* events: a page of a kernel's ring buffer has fewer */

/* A guest CPU's number in its trace and KVM's id of the vCPU. */
struct merge_map {
	unsigned cpu, vcpu;
};

/* An offset or a scaling that is given; vcpu is KVM's id or MERGE_ALL_VCPUS. */
struct merge_given {
	int vcpu;
	bool is_scale;
	bool live; /* of the running VM, which may have booted since the trace */
	uint64_t offset;
	struct tsc_scale scale;
};

/* A part of the host's time in which a vCPU had one offset. */
struct merge_span {
	uint64_t from, to; /* the host's TSC, `to` not included */
	uint64_t offset;
	/* Steps back of the guest's TSC with which this span and those behind it begin: how many,
	 * and their cycles together. */
	uint64_t backs, down;
	bool back; /* this one begins with such a step */
	bool uncertain; /* a change within is not known */
};

/* One CPU of a guest as its trace numbers it. */
struct merge_cpu {
	bool seen; /* it has events */
	uint64_t first, last; /* its events' stamps in the trace's order */
	uint64_t events, backs; /* backs: steps back */
	uint64_t equal; /* the last event with the stamp of the one before, 0: none; from 1 */
	/*
	 * Of the first nlate steps back: the event of an equal stamp not long before, from which on
	 * the guest's TSC may have been set back and its ring buffer not have followed; 0: none.
	 */
	uint64_t *late;
	size_t nlate, late_room;
	struct merge_span *span;
	size_t nspans;
	struct tsc_scale scale;
	const struct tsc_chain
		*chain; /* the spans are from its epochs; NULL: an offset was given */
	bool borrowed; /* it has the spans of the first CPU: its own offset is not known */
	bool doubtful; /* its first stamp fits several spans */
	size_t start; /* the span of its first event */
};

/* One input: the host's or a guest's text. */
struct merge_input {
	const char *name; /* what begins its lines; untrusted */
	bool named; /* by the user */
	const char *path; /* "-": standard input; untrusted */
	int fd; /* a file that can be sought; owned */
	uint64_t first, last; /* smallest and largest stamp; host: its own TSC */
	uint64_t events, orphans, cut, lost;
	/* After the merge: lines before or behind the host's trace; doubts too many to be said. */
	uint64_t outside, unsaid;
	/* Guests only. */
	struct merge_map *map;
	size_t nmaps;
	struct merge_given *given;
	size_t ngiven;
	const char *by_default; /* the recording that they are from, unasked */
	struct merge_cpu *cpu; /* by number */
	size_t ncpus;
};

struct merge {
	struct merge_input host, *guest;
	size_t nguests;
	struct tsc_epochs epochs;
	bool escape; /* the output is a terminal */
	char why[600]; /* one line: what is wrong and how to mend it; set when a call fails */
};

void merge_free(struct merge *m);

/*
 * merge_input.c: opens in->path (a pipe is copied into a file that has no name), checks its clock
 * and notes what the merge must know beforehand. Epochs of the host's are added to `found`. 0;
 * -EINVAL for a text that cannot be merged, -errno; m->why is set.
 */
struct merge_found {
	struct tsc_epoch *epoch;
	size_t n, cap;
};
int merge_found_add(struct merge_found *found, const struct tsc_epoch *e); /* 0 or -ENOMEM */
int merge_input_open(struct merge *m, struct merge_input *in, struct merge_found *found);
/* Its two halves: the first leaves a file that can be sought, the second is of a trace's text. */
int merge_input_file(struct merge *m, struct merge_input *in);
int merge_input_read(struct merge *m, struct merge_input *in, struct merge_found *found);
/* The epochs of all files in the order of time, as chains. 0 or -ENOMEM. */
int merge_chains(struct merge *m, struct merge_found *found);

/*
 * merge_spool.c: in->fd, a text that can be read more than once, whatever it was. 0; -ENOEXEC,
 * -EPROTO: a trace.dat, and trace-cmd is not there, or makes no text of it; -errno.
 */
int merge_spool(struct merge_input *in);

/* merge_offset.c: sets each guest CPU's spans. 0 or -EINVAL, -ENOMEM with m->why. */
int merge_resolve(struct merge *m);
/* The first of the CPU's spans that the stamp fits, from `from` on, to *first. False: none. */
bool merge_fits(const struct merge_cpu *c, uint64_t stamp, size_t from, size_t *first);
/* The same behind span `now`, which it fits: no further than all steps back could bring it. */
bool merge_fits_later(const struct merge_cpu *c, uint64_t stamp, size_t now, size_t *first);
unsigned merge_vcpu_of(const struct merge_input *guest, unsigned cpu);

/*
 * merge_args.c: adds what a word of the command line says to the guest. 0; -EINVAL with m->why;
 * -ENOMEM.
 */
int merge_add_given(struct merge_input *guest, const struct merge_given *one); /* 0 or -ENOMEM */
int merge_add_offset(struct merge *m, struct merge_input *guest, const char *arg);
int merge_add_scaling(struct merge *m, struct merge_input *guest, const char *arg);
int merge_add_map(struct merge *m, struct merge_input *guest, const char *arg);
/*
 * A file (of any kind: it is read once, for all nguests of these) with a line "[VM] vcpuN OFFSET
 * [RATIO FRAC_BITS]" a vCPU, of the guest's name or without one; or a trace of
 * kvm_write_tsc_offset, whose epochs are added to `found`.
 */
int merge_add_tsc_file(struct merge *m, struct merge_input *guest, size_t nguests, const char *path,
		       struct merge_found *found);

/* merge_recording.c: what a recording knows of the VM that the guest is named after. As above. */
int merge_add_recording(struct merge *m, struct merge_input *guest, const char *path,
			struct merge_found *found);
/*
 * The same of guests of which nothing else is known, where it is there and knows them (path must
 * outlive m). 0 or -ENOMEM.
 */
int merge_default_recording(struct merge *m, const char *path, struct merge_found *found);

/*
 * merge_live.c: adds the offsets of the VMs below `dir` (NULL: this host) that are named as guests;
 * those that do not run here stay as they are. 0 or -errno.
 */
int merge_live(struct merge *m, const char *dir);

/*
 * merge.c: writes all lines in order. Lines of `#` say at their place what is not certain. 0 or
 * -errno of the output or an input (m->why is set for an input).
 */
int merge_run(struct merge *m, struct out *out);

#endif
