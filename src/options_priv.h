// SPDX-License-Identifier: GPL-2.0-only
/* What the files of the option table (options*.c) share. */
#ifndef KVMTOP_OPTIONS_PRIV_H
#define KVMTOP_OPTIONS_PRIV_H

#include "demand.h"
#include "options.h"

/* One line in err; returns -EINVAL. */
int options_bad(char *err, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A word of the command line, safe for a terminal. Returns buf. */
const char *options_shown(const char *text, char *buf, size_t size);

/*
 * options.c: a decimal number in [least, most]; false for anything else, also "1e", "0x1", "nan",
 * "".
 */
bool options_number(const char *text, double least, double most, double *out);

/* options_record.c: parsers of option_rows */
int options_parse_output(struct options *o, const char *arg, char *err, size_t size);
int options_parse_keep(struct options *o, const char *arg, char *err, size_t size);
int options_parse_max_size(struct options *o, const char *arg, char *err, size_t size);
int options_parse_anonymize(struct options *o, const char *arg, char *err, size_t size);
int options_parse_perf(struct options *o, const char *arg, char *err, size_t size);
int options_parse_rows(struct options *o, const char *arg, char *err, size_t size);
int options_parse_for(struct options *o, const char *arg, char *err, size_t size);
int options_parse_at(struct options *o, const char *arg, char *err, size_t size);
int options_parse_slow(struct options *o, const char *arg, char *err, size_t size);

/* options_report.c: the same, and what can be judged when all are known */
int options_parse_input(struct options *o, const char *arg, char *err, size_t size);
int options_parse_perf_compat(struct options *o, const char *arg, char *err, size_t size);
int options_parse_explain_perf(struct options *o, const char *arg, char *err, size_t size);
int options_check_report(struct options *o, char *err, size_t size);

/* options_guest.c */
int options_parse_guest_kallsyms(struct options *o, const char *arg, char *err, size_t size);
int options_parse_guest_modules(struct options *o, const char *arg, char *err, size_t size);
int options_parse_guest_vmlinux(struct options *o, const char *arg, char *err, size_t size);
int options_parse_guest_mount(struct options *o, const char *arg, char *err, size_t size);

#endif
