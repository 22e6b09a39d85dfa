// SPDX-License-Identifier: GPL-2.0-only
/* The parts of a bundle that are text (bundle.h). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "anonymize.h"
#include "bundle.h"
#include "clock.h"
#include "doctor.h"
#include "format.h"
#include "host_facts.h"
#include "out.h"
#include "tar.h"
#include "text.h"
#include "version.h"

static int write_versions(struct bundle *b, struct out *out)
{
	struct utsname u;
	char time[48];
	struct timespec now;

	(void)b;
	clock_gettime(CLOCK_REALTIME, &now);
	format_time(time, sizeof(time), now);
	out_printf(out, "made           %s\nkvmtop         %s\nSQLite         %s\n", time,
		   KVMTOP_VERSION, store_library());
	if (uname(&u) == 0)
		out_printf(out, "kernel         %s %s %s %s\n", u.sysname, u.release, u.version,
			   u.machine);
	return 0;
}

static int write_doctor(struct bundle *b, struct out *out)
{
	struct doctor_report *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	doctor_gather(b->o, b->root, r);
	format_doctor_text(out, r);
	free(r);
	return 0;
}

static int write_facts(struct bundle *b, struct out *out)
{
	struct host_facts f;
	int rc = host_facts_read(b->root, &f);

	if (!rc && b->anon)
		rc = anon_facts(b->anon, &f);
	for (size_t i = 0; i < f.n && !rc; i++) {
		format_escaped(out, text_escape, f.fact[i].name);
		out_text(out, "  ");
		format_escaped(out, text_escape, f.fact[i].value);
		out_text(out, "\n");
	}
	host_facts_free(&f);
	return rc;
}

static int write_readme(struct bundle *b, struct out *out)
{
	char from[48] = "", to[48] = "";

	out_text(out, "Made by kvmtop bundle.\n\n"
		      "versions.txt   which programs made this\n"
		      "doctor.txt     which sources of figures work on the host\n"
		      "facts.txt      what the host is, now\n");
	if (b->store) {
		format_time(from, sizeof(from),
			    (struct timespec){.tv_sec = (b->first.wall - b->first.dt) / NS_PER_S});
		format_time(to, sizeof(to), (struct timespec){.tv_sec = b->last.wall / NS_PER_S});
		out_printf(out,
			   "recording.db   %" PRIu64 " intervals from %s to %s:\n"
			   "               kvmtop replay recording.db, kvmtop diff, or sqlite3\n"
			   "tables/        the whole range as one interval (its last run of the "
			   "recorder)\n"
			   "findings.txt   what kvmtop found, and when it began\n",
			   b->intervals, from, to);
	} else {
		out_text(out, "no recording: ");
		format_escaped(out, text_escape, b->no_recording);
		out_text(out, "\n");
	}
	if (b->damaged)
		out_printf(out, "%" PRIu64 " intervals could not be read and are missing\n",
			   b->damaged);
	if (b->perf_fd >= 0)
		out_printf(out, "perf.data      %.3g s of perf kvm stat record\n",
			   (double)b->o->perf_ns / 1e9);
	if (b->no_perf[0])
		out_printf(out, "no perf.data: %s\n", b->no_perf);
	if (b->anon)
		out_text(out,
			 "Names and UUIDs of VMs and names of hosts are replaced by others, the "
			 "same\neverywhere; command lines, titles and cgroups are left out.\n");
	return 0;
}

/* The text of a part, terminated, for free(). NULL with errno set. */
static char *read_back(int fd, size_t *n)
{
	struct stat sb;
	char *text;

	if (fstat(fd, &sb))
		return NULL;
	*n = (size_t)sb.st_size;
	text = calloc(1, *n + 1);
	if (text && pread(fd, text, *n, 0) != sb.st_size) {
		free(text);
		errno = EIO;
		return NULL;
	}
	return text;
}

static int add_replaced(struct bundle *b, const char *path, int fd)
{
	char *text, *other = NULL;
	size_t n;
	int rc;

	text = read_back(fd, &n);
	if (!text)
		return -errno;
	if (b->anon) {
		other = anon_text(b->anon, text);
		free(text);
		if (!other)
			return -ENOMEM;
		text = other;
		n = strlen(text);
	}
	rc = tar_add(b->tar, path, text, n);
	free(text);
	return rc;
}

int bundle_add_text(struct bundle *b, const char *name, bundle_writer write)
{
	int fd = memfd_create("part", MFD_CLOEXEC), rc;
	struct out *out = fd < 0 ? NULL : out_new(fd, -1, 0);
	char path[160];

	if (!out) {
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	rc = write(b, out);
	if (!rc)
		rc = out_flush(out);
	out_free(out);
	snprintf(path, sizeof(path), "%s/%s", b->folder, name);
	if (!rc)
		rc = add_replaced(b, path, fd);
	close(fd);
	return rc;
}

int bundle_write_parts(struct bundle *b, char *err)
{
	static const struct {
		const char *name;
		bundle_writer write;
	} texts[] = {
		{"versions.txt", write_versions},
		{"doctor.txt", write_doctor},
		{"facts.txt", write_facts},
	};
	char name[160];
	int rc = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && !rc; i++)
		rc = bundle_add_text(b, texts[i].name, texts[i].write);
	if (!rc && b->store)
		rc = bundle_write_recording(b, err);
	snprintf(name, sizeof(name), "%s/perf.data", b->folder);
	if (!rc && b->perf_fd >= 0)
		rc = tar_add_fd(b->tar, name, b->perf_fd);
	/* Last: only now it is known what could not be read. */
	return rc ? rc : bundle_add_text(b, "README.txt", write_readme);
}
