// SPDX-License-Identifier: GPL-2.0-only
/*
 * Text that goes to people and to formats: escaping of untrusted text, widths by
 * wcwidth, numbers as screens show them.
 */
#ifndef KVMTOP_TEXT_H
#define KVMTOP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "value.h"

/*
 * Makes untrusted bytes safe for a terminal: control characters (C0, DEL, C1), bidi
 * overrides, line separators and bytes that are no UTF-8 become \n, \t, \e, \xNN or \uNNNN;
 * a backslash becomes \\. Always terminated, cut at a character's border. Returns the
 * length that was needed.
 */
size_t text_escape(char *out, size_t size, const char *in);
/* The same without blanks inside (text format): a blank becomes \x20; "" becomes "-". */
size_t text_escape_word(char *out, size_t size, const char *in);
/* RFC 4180: quotes where needed; untrusted bytes escaped first. */
size_t text_escape_csv(char *out, size_t size, const char *in);
/* What stands between the quotes of a label of Prometheus; untrusted bytes escaped first. */
size_t text_escape_label(char *out, size_t size, const char *in);
/*
 * One word of a command that people are shown to paste: whatever is in it, a shell runs nothing of
 * it, also after text_escape(). It is in quotes where needed; what a terminal would act on is in
 * the way of bash, zsh and ksh ($'\e'). A word that is cut is closed, so it is another word: look
 * at the length.
 */
size_t text_shell_word(char *out, size_t size, const char *in);
/* One part of a path: letters, digits, "_", "-" and (not first) "." stay, other bytes become %XX.
 */
size_t text_path_part(char *out, size_t size, const char *in);
/* Valid UTF-8 for a JSON library: invalid bytes become \xNN (a literal backslash). */
size_t text_utf8_clean(char *out, size_t size, const char *in);

/* Decodes one character; returns its bytes (≥ 1) and the code point, 0xfffd for bad bytes. */
size_t utf8_next(const char *s, uint32_t *cp);
/* Columns on a terminal; independent of the locale: 0, 1 or 2; 1 for what is not printable. */
int utf8_width_cp(uint32_t cp);
size_t utf8_width(const char *s);
/* Cuts in the middle with '~' so that it fits `width` columns ("instance-0~1"). */
void text_cut_middle(char *out, size_t size, const char *in, size_t width);

/* A figure in at most `width` columns: 9999, 48.2k, 1.20M; not known: "-", "n/a"; partial: "~12".
 */
void fmt_count(char *out, size_t size, struct value v, int width);
void fmt_pct(char *out, size_t size, struct value v, int width);
/* "500us", "2ms", "1.5s", "800ns"; false: something else, or not within `least` and `most`. */
bool text_parse_ns(const char *text, uint64_t least, uint64_t most, uint64_t *ns);
/* 813ns, 48.2us, 1.20ms, 3.41s. */
void fmt_ns(char *out, size_t size, struct value v, int width);

#endif
