// SPDX-License-Identifier: GPL-2.0-only
/* Entry point: reads the command line and hands over to the command (cmd_*.c). */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "demo.h"
#include "options.h"
#include "version.h"

/*
 * A descriptor that the caller closed would be given to the next file that is opened, and
 * figures would be written into it. Opened the wrong way round, so that using it still fails.
 */
static void fill_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		while (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			if (open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
				return;
}

/* What was printed with stdio must have arrived; a reader that went away is no failure. */
static int close_stdout(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno == EPIPE)
		return status;
	fprintf(stderr, "kvmtop: standard output: %s\n", strerror(errno));
	return STATUS_FAILED;
}

static int act(const struct options *o)
{
	switch (o->action) {
	case ACTION_HELP:
		options_help(stdout, o->command);
		break;
	case ACTION_VERSION:
		puts("kvmtop " KVMTOP_VERSION);
		break;
	case ACTION_FIELDS:
		options_fields_help(stdout);
		break;
	case ACTION_COMPLETION:
		options_completion(o->arg, stdout);
		break;
	case ACTION_DUMP:
		if (options_dump(o->arg, stdout) < 0) {
			fputs("kvmtop: --dump-tables: options, commands, fields, tables, "
			      "collectors or keys\n",
			      stderr);
			return STATUS_USAGE;
		}
		break;
	case ACTION_RUN:
		return o->command->run(o);
	}
	return close_stdout(STATUS_OK);
}

int main(int argc, char **argv)
{
	struct options o;
	char err[400];
	int status;

	fill_standard_descriptors();
	/*
	 * A reader that goes away shows as EPIPE, a file as large as the shell allows as EFBIG: so
	 * we can say it, and end in order.
	 */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* Only the characters: numbers are never localised. */
	setlocale(LC_CTYPE, "");
	if (argc > 1 && strcmp(argv[1], DEMO_GUEST_COMMAND) == 0)
		return demo_guest_main(argc, argv);
	if (options_parse(argc, argv, &o, err, sizeof(err)) < 0 ||
	    options_check_files(&o, err, sizeof(err)) < 0) {
		fprintf(stderr, "kvmtop: %s\n", err);
		status = STATUS_USAGE;
	} else {
		status = act(&o);
	}
	options_free(&o);
	return status;
}
