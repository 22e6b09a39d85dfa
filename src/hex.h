// SPDX-License-Identifier: GPL-2.0-only
/* One hexadecimal digit: what the parsers of kernel files share. */
#ifndef KVMTOP_HEX_H
#define KVMTOP_HEX_H

/* 0 to 15, of either case; -1: no such digit. Independent of the locale. */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
