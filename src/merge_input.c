// SPDX-License-Identifier: GPL-2.0-only
/* The inputs of a merge (merge.h): opened, their clocks checked, read once beforehand. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "grow.h"
#include "merge.h"
#include "text.h"

#define LATE_MOST 65536 /* steps back of a CPU that are looked at so closely */
#define TO_TSC "echo x86-tsc > /sys/kernel/tracing/trace_clock"

__attribute__((format(printf, 3, 4))) static int refuse(struct merge *m, const char *path,
							const char *fmt, ...)
{
	char shown[200];
	va_list ap;
	int n;

	text_escape(shown, sizeof(shown), path);
	n = snprintf(m->why, sizeof(m->why), "%s: ", shown);
	va_start(ap, fmt);
	vsnprintf(m->why + n, sizeof(m->why) - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* --- opening --- */

int merge_input_file(struct merge *m, struct merge_input *in)
{
	bool standard = strcmp(in->path, "-") == 0;
	struct stat sb;
	int rc;

	in->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
			  : open(in->path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0) {
		rc = -errno;
		refuse(m, in->path, "%s", strerror(-rc));
		return rc;
	}
	if (fstat(in->fd, &sb) == 0 && S_ISDIR(sb.st_mode))
		return refuse(m, in->path, "a folder, not a trace: name the file in it");
	rc = merge_spool(in);
	if (!rc)
		return 0;
	if (rc == -EPROTO)
		return refuse(
			m, in->path,
			"is a trace.dat, of which trace-cmd makes no text: is it whole? trace-cmd "
			"report -i FILE");
	if (rc == -ENOEXEC)
		return refuse(
			m, in->path,
			"is a trace.dat, and trace-cmd, which reads it, is not installed: apt "
			"install trace-cmd");
	refuse(m, in->path, "cannot be kept in a file: %s: set TMPDIR to a folder with room",
	       strerror(-rc));
	return rc;
}

/* --- what it is --- */

static int check_form(struct merge *m, const struct merge_input *in,
		      const struct tracetext_facts *f)
{
	char first[200];

	if (f->latency)
		return refuse(m, in->path,
			      "its time stamps are relative: record again after: echo 0 > "
			      "/sys/kernel/tracing/options/latency-format");
	if (strncmp(f->tracer, "function_graph", 14) == 0)
		return refuse(
			m, in->path,
			"the function_graph tracer prints no time stamps: record again after: "
			"echo nop > /sys/kernel/tracing/current_tracer");
	if (!f->events && f->orphans > 2) {
		text_escape(first, sizeof(first), f->first);
		return refuse(m, in->path, "no text of ftrace: '%s'", first);
	}
	return 0;
}

static int check_clock(struct merge *m, const struct merge_input *in, struct tracetext *t,
		       const char *where)
{
	enum tracetext_clock clock;
	int rc = tracetext_clock(t, &clock);

	if (rc < 0) {
		refuse(m, in->path, "%s", strerror(-rc));
		return rc;
	}
	if (clock == TRACETEXT_SECONDS)
		return refuse(m, in->path,
			      "its time stamps are seconds, not cycles of the TSC: record again "
			      "after, %s: " TO_TSC,
			      where);
	if (clock == TRACETEXT_COUNTER)
		return refuse(m, in->path,
			      "its time stamps are those of clock counter or uptime: record again "
			      "after, %s: " TO_TSC,
			      where);
	return 0;
}

/* --- the first reading --- */

static int cpu_add(struct merge_input *in, unsigned cpu)
{
	struct merge_cpu *more;
	size_t n = cpu + 1;

	if (cpu < in->ncpus)
		return 0;
	more = reallocarray(in->cpu, n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + in->ncpus, 0, (n - in->ncpus) * sizeof(*more));
	in->cpu = more;
	in->ncpus = n;
	return 0;
}

static int note_back(struct merge_cpu *c)
{
	bool near = c->equal && c->events - c->equal < MERGE_PAGE;

	c->backs++;
	if (c->nlate == LATE_MOST)
		return 0;
	if (!grow(&c->late, c->nlate, &c->late_room, sizeof(*c->late)))
		return -ENOMEM;
	c->late[c->nlate++] = near ? c->equal : 0;
	return 0;
}

static int note_guest(struct merge_input *in, const struct tracetext_event *e)
{
	struct merge_cpu *c;
	int rc = 0;

	if (cpu_add(in, e->cpu) < 0)
		return -ENOMEM;
	c = &in->cpu[e->cpu];
	c->events++;
	if (!c->seen)
		c->first = e->ts;
	else if (e->ts == c->last)
		c->equal = c->events;
	else if (e->ts < c->last)
		rc = note_back(c);
	c->seen = true;
	c->last = e->ts;
	return rc;
}

int merge_found_add(struct merge_found *found, const struct tsc_epoch *e)
{
	if (!grow(&found->epoch, found->n, &found->cap, sizeof(*found->epoch)))
		return -ENOMEM;
	found->epoch[found->n++] = *e;
	return 0;
}

static int note_epoch(struct merge_found *found, const struct tracetext_event *e)
{
	static const char name[] = "kvm_write_tsc_offset";
	size_t at = e->name + e->name_len + 1, end = e->line + e->line_len;
	struct tsc_epoch ep = {.at = e->ts, .tid = e->pid, .tgid = e->tgid};

	if (e->name_len != sizeof(name) - 1 || memcmp(e->text + e->name, name, e->name_len) != 0 ||
	    at > end || !tsc_epoch_parse(e->text + at, end - at, &ep))
		return 0;
	return merge_found_add(found, &ep);
}

static int read_through(struct merge_input *in, struct tracetext *t, struct merge_found *found)
{
	struct tracetext_event e;
	int rc;

	in->first = UINT64_MAX;
	while ((rc = tracetext_next(t, &e)) > 0) {
		in->first = e.ts < in->first ? e.ts : in->first;
		in->last = e.ts > in->last ? e.ts : in->last;
		in->lost += e.lost;
		rc = found ? note_epoch(found, &e) : note_guest(in, &e);
		if (rc < 0)
			break;
	}
	in->events = tracetext_facts(t)->events;
	in->orphans = tracetext_facts(t)->orphans;
	in->cut = tracetext_facts(t)->cut;
	return rc;
}

int merge_input_read(struct merge *m, struct merge_input *in, struct merge_found *found)
{
	struct tracetext *t = NULL;
	int rc = tracetext_open(in->fd, 0, &t);

	if (!rc)
		rc = check_clock(m, in, t, found ? "on the host" : "in the guest");
	if (!rc)
		rc = read_through(in, t, found);
	if (rc >= 0)
		rc = check_form(m, in, tracetext_facts(t));
	else if (!m->why[0])
		refuse(m, in->path, "%s", strerror(-rc));
	tracetext_close(t);
	return rc;
}

int merge_input_open(struct merge *m, struct merge_input *in, struct merge_found *found)
{
	int rc = merge_input_file(m, in);

	return rc ? rc : merge_input_read(m, in, found);
}

static int by_time(const void *a, const void *b)
{
	const struct tsc_epoch *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

int merge_chains(struct merge *m, struct merge_found *found)
{
	int rc = 0;

	if (found->n)
		qsort(found->epoch, found->n, sizeof(*found->epoch), by_time);
	for (size_t i = 0; i < found->n && !rc; i++)
		rc = tsc_epochs_add(&m->epochs, &found->epoch[i]);
	free(found->epoch);
	*found = (struct merge_found){0};
	return rc;
}

static void input_free(struct merge_input *in)
{
	for (size_t i = 0; i < in->ncpus; i++) {
		free(in->cpu[i].span);
		free(in->cpu[i].late);
	}
	free(in->cpu);
	free(in->map);
	free(in->given);
	if (in->fd >= 0)
		close(in->fd);
}

void merge_free(struct merge *m)
{
	input_free(&m->host);
	for (size_t i = 0; i < m->nguests; i++)
		input_free(&m->guest[i]);
	free(m->guest);
	tsc_epochs_free(&m->epochs);
}
