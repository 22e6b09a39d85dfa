// SPDX-License-Identifier: GPL-2.0-only
/* kvmtop doctor (doctor.h). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "doctor.h"
#include "options.h"
#include "own_path.h"
#include "sysroot.h"

/* What mends it shall work when it is copied. */
static void say_own_path(struct doctor_report *r)
{
	char self[PATH_MAX], words[PROBE_TEXT];
	const char *command = own_command(self, sizeof(self));

	for (size_t i = 0; i < r->nlines; i++) {
		struct probe *p = &r->line[i].probe;

		own_words(words, sizeof(words), p->mend, command);
		memcpy(p->mend, words, sizeof(words));
	}
}

static int print(const struct doctor_report *r, enum output_format format)
{
	struct out *o = out_new(STDOUT_FILENO, -1, 0);
	int rc = o ? 0 : -ENOMEM;

	if (!rc && format == FORMAT_JSON)
		rc = format_doctor_json(o, r);
	else if (!rc)
		format_doctor_text(o, r);
	if (!rc)
		rc = out_flush(o);
	out_free(o);
	return rc == -EPIPE ? 0 : rc;
}

int cmd_doctor(const struct options *o)
{
	struct doctor_report *r;
	struct sysroot *root;
	char err[240];
	int rc = sysroot_open_host(o->root, &root, err, sizeof(err));
	bool works;

	if (rc) {
		fprintf(stderr, "kvmtop: %s\n", err);
		return STATUS_FAILED;
	}
	r = calloc(1, sizeof(*r));
	if (!r) {
		sysroot_close(root);
		fputs("kvmtop: no memory\n", stderr);
		return STATUS_FAILED;
	}
	works = doctor_gather(o, root, r);
	say_own_path(r);
	rc = print(r, o->format);
	if (rc)
		fprintf(stderr, "kvmtop: standard output: %s\n", strerror(-rc));
	free(r);
	sysroot_close(root);
	return rc || !works ? STATUS_FAILED : STATUS_OK;
}
