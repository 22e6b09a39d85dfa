// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvmtop bundle: evidence for a colleague or a vendor in one .tar.gz (bundle.h).
 *
 * It says what will be in it before anything is written, never writes over a file, and leaves
 * nothing behind when it fails or is interrupted.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "anonymize.h"
#include "bundle.h"
#include "child.h"
#include "clock.h"
#include "commands.h"
#include "signals.h"
#include "sysroot.h"
#include "tar.h"
#include "store_time.h"
#include "text.h"

static void name_it(struct bundle *b)
{
	time_t now = time(NULL);
	char stamp[32] = "";
	struct tm tm;

	if (localtime_r(&now, &tm))
		strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	snprintf(b->folder, sizeof(b->folder), "kvmtop-bundle-%s", stamp);
	if (b->o->output)
		snprintf(b->path, sizeof(b->path), "%s", b->o->output);
	else
		snprintf(b->path, sizeof(b->path), "%s.tar.gz", b->folder);
}

static int usage(char *err, const char *why)
{
	snprintf(err, BUNDLE_ERR, "bundle: %s", why);
	return -EINVAL;
}

static int check(const struct bundle *b, char *err)
{
	char safe[200];

	if (b->o->nwords > 1)
		return usage(err, "one word too many: it takes one recording");
	if (b->o->anonymize && b->o->perf_ns)
		return usage(err, "--perf: perf writes names into its file: leave --anonymize or "
				  "--perf away");
	if (b->o->output && strlen(b->o->output) >= sizeof(b->path))
		return usage(err, "--output: too long a name");
	if (access(b->path, F_OK) == 0) {
		text_escape(safe, sizeof(safe), b->path);
		snprintf(err, BUNDLE_ERR, "%s: it is there already: give -o another name", safe);
		return -EEXIST;
	}
	return 0;
}

/* On standard output, and there before the first byte of the archive is. */
static void list(const struct bundle *b)
{
	char safe[1024], from[40], to[40];

	text_escape(safe, sizeof(safe), b->path);
	printf("%s will contain:\n"
	       "  README.txt, versions.txt\n"
	       "  doctor.txt     which sources of figures work on this host\n"
	       "  facts.txt      kernel, boot, command line, mitigations, module parameters\n",
	       safe);
	if (b->store) {
		text_escape(safe, sizeof(safe), b->recording);
		store_time_text(from, sizeof(from), b->first.wall - b->first.dt);
		store_time_text(to, sizeof(to), b->last.wall);
		printf("  recording.db   %" PRIu64 " intervals of %s, %s to %s\n"
		       "  tables/        the same as one interval, as text\n"
		       "  findings.txt   what kvmtop found\n",
		       b->intervals, safe, from, to);
	} else {
		text_escape(safe, sizeof(safe), b->no_recording);
		printf("no recording: %s\n", safe);
	}
	if (b->o->perf_ns)
		printf("  perf.data      %.3g s of perf kvm stat record, from now on\n",
		       (double)b->o->perf_ns / 1e9);
	printf("%s\n", b->o->anonymize
			       ? "Names and UUIDs of VMs and names of hosts are replaced; command "
				 "lines are left out."
			       : "Names, UUIDs and command lines of VMs are in it (--anonymize "
				 "replaces them).");
	fflush(stdout);
}

/* SIGINT and its like end a bundle between two intervals or parts, and what was written goes. */
static int block_signals(struct bundle *b)
{
	b->sigfd = signals_open(true, NULL);
	return b->sigfd < 0 ? b->sigfd : 0;
}

bool bundle_was_ended(struct bundle *b)
{
	if (b->sigfd >= 0 && child_asked(b->sigfd))
		b->ended = true;
	return b->ended;
}

static int open_all(struct bundle *b, char *err)
{
	int rc = sysroot_open_host(b->o->root, &b->root, err, BUNDLE_ERR);

	if (!rc)
		rc = bundle_open_recording(b, err);
	if (!rc && b->o->anonymize) {
		b->anon = anon_new();
		rc = b->anon ? bundle_learn(b, err) : -ENOMEM;
	}
	return rc;
}

static int write_archive(struct bundle *b, char *err)
{
	int fd = open(b->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), rc;

	if (fd < 0)
		return -errno;
	/* Whatever the umask is: for who made it to read, and for nobody else. */
	rc = fchmod(fd, 0600) ? -errno : 0;
	if (!rc) {
		b->tar = tar_new(fd, time(NULL));
		rc = b->tar ? bundle_write_parts(b, err) : -ENOMEM;
	}
	if (!rc)
		rc = tar_end(b->tar);
	if (!rc && fsync(fd))
		rc = -errno;
	if (!rc && bundle_was_ended(b))
		rc = -EINTR;
	tar_free(b->tar);
	close(fd);
	if (rc)
		unlink(b->path);
	return rc;
}

static int make(struct bundle *b, char *err)
{
	int rc = check(b, err);

	if (!rc)
		rc = open_all(b, err);
	if (rc)
		return rc;
	list(b);
	rc = block_signals(b);
	if (rc)
		return rc;
	if (b->o->perf_ns)
		bundle_run_perf(b);
	if (bundle_was_ended(b))
		return -EINTR;
	if (b->no_perf[0])
		fprintf(stderr, "kvmtop: no perf.data: %s\n", b->no_perf);
	return write_archive(b, err);
}

static void say_damaged(const struct bundle *b)
{
	char safe[200];

	text_escape(safe, sizeof(safe), b->recording);
	fprintf(stderr,
		"kvmtop: %s: %" PRIu64 " of %" PRIu64
		" intervals could not be read and %s missing\n",
		safe, b->damaged, b->intervals, b->damaged == 1 ? "is" : "are");
}

int cmd_bundle(const struct options *o)
{
	struct bundle b = {.o = o, .perf_fd = -1, .sigfd = -1};
	char err[BUNDLE_ERR] = "", safe[1024];
	int rc;

	name_it(&b);
	rc = make(&b, err);
	text_escape(safe, sizeof(safe), b.path);
	if (rc == -EINTR)
		snprintf(err, sizeof(err), "ended: nothing was written");
	if (rc && err[0])
		fprintf(stderr, "kvmtop: %s\n", err);
	else if (rc)
		fprintf(stderr, "kvmtop: %s: %s\n", safe, strerror(-rc));
	else
		printf("written: %s\n", safe);
	if (!rc && b.damaged)
		say_damaged(&b);
	if (b.perf_fd >= 0)
		close(b.perf_fd);
	if (b.sigfd >= 0)
		close(b.sigfd);
	store_close(b.store);
	anon_free(b.anon);
	sysroot_close(b.root);
	return !rc ? STATUS_OK : rc == -EINVAL ? STATUS_USAGE : STATUS_FAILED;
}
