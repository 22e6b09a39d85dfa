// SPDX-License-Identifier: GPL-2.0-only
/* The field table as a whole: its lists, looking up by name, rows, and the one comparator. */
#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "field_tables.h"

static const struct field_list *const lists[TABLE_NR] = {
	[TABLE_HOST] = &field_list_host,       [TABLE_VM] = &field_list_vm,
	[TABLE_VCPU] = &field_list_vcpu,       [TABLE_EXIT] = &field_list_exit,
	[TABLE_SYMBOL] = &field_list_symbol,   [TABLE_CODE] = &field_list_code,
	[TABLE_WAITED] = &field_list_waited,   [TABLE_CPU] = &field_list_cpu,
	[TABLE_PMU] = &field_list_pmu,	       [TABLE_SLOW] = &field_list_slow,
	[TABLE_THREAD] = &field_list_thread,   [TABLE_TASK] = &field_list_task,
	[TABLE_FINDING] = &field_list_finding,
};

const struct field_list *field_list(enum field_table t)
{
	return lists[t];
}

/* "steal" for steal_pct, "exits" for exits_per_s, "p99" for p99_ns. */
static bool without_unit(const char *id, const char *name)
{
	static const char *const units[] = {"_pct", "_per_s", "_ns"};
	size_t n = strlen(name);

	if (strncasecmp(id, name, n) != 0)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(id + n, units[i]) == 0)
			return true;
	return false;
}

const struct field *field_find(enum field_table t, const char *name)
{
	const struct field_list *l = lists[t];

	/* Drawing asks for each cell, by the id or the title as they are. */
	for (size_t i = 0; i < l->n; i++)
		if ((l->field[i].id[0] == name[0] && strcmp(l->field[i].id, name) == 0) ||
		    (l->field[i].title[0] == name[0] && strcmp(l->field[i].title, name) == 0))
			return &l->field[i];
	for (size_t i = 0; i < l->n; i++)
		if (strcasecmp(l->field[i].id, name) == 0)
			return &l->field[i];
	for (size_t i = 0; i < l->n; i++)
		if (strcasecmp(l->field[i].title, name) == 0)
			return &l->field[i];
	for (size_t i = 0; i < l->n; i++)
		if (without_unit(l->field[i].id, name) ||
		    (l->field[i].title[0] == '%' && strcasecmp(l->field[i].title + 1, name) == 0))
			return &l->field[i];
	return NULL;
}

const void *field_rows(const struct snapshot *s, enum field_table t, size_t *n)
{
	switch (t) {
	case TABLE_HOST:
		*n = 1;
		return &s->host;
	case TABLE_VM:
		*n = s->nvms;
		return s->vms;
	case TABLE_VCPU:
		*n = s->nvcpus;
		return s->vcpus;
	case TABLE_EXIT:
		*n = s->nexits;
		return s->exits;
	case TABLE_SYMBOL:
		*n = s->nsymbols;
		return s->symbols;
	case TABLE_WAITED:
		*n = s->nwaited;
		return s->waited;
	case TABLE_CODE:
		*n = s->ncode;
		return s->code;
	case TABLE_PMU:
		*n = s->npmcs;
		return s->pmcs;
	case TABLE_SLOW:
		*n = s->nslow;
		return s->slow;
	case TABLE_CPU:
		*n = s->ncpus;
		return s->cpus;
	case TABLE_THREAD:
		*n = s->nthreads;
		return s->threads;
	case TABLE_TASK:
		*n = s->ntasks;
		return s->tasks;
	case TABLE_FINDING:
		*n = s->nfindings;
		return s->findings;
	case TABLE_NR:
		break;
	}
	*n = 0;
	return NULL;
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Two runs of digits by their value, whatever their length; moves both behind them. */
static int compare_digits(const char **a, const char **b)
{
	const char *x, *y;
	size_t nx, ny;

	while (**a == '0')
		++*a;
	while (**b == '0')
		++*b;
	x = *a;
	y = *b;
	while (digit(**a))
		++*a;
	while (digit(**b))
		++*b;
	nx = (size_t)(*a - x);
	ny = (size_t)(*b - y);
	if (nx != ny)
		return nx < ny ? -1 : 1;
	return memcmp(x, y, nx);
}

/* Letters without regard to case first; what is equal then is told apart by its bytes. */
static int compare_text(const char *a, const char *b)
{
	const char *wholea = a, *wholeb = b;
	int c;

	while (*a && *b) {
		if (digit(*a) && digit(*b)) {
			c = compare_digits(&a, &b);
		} else {
			c = tolower((unsigned char)*a) - tolower((unsigned char)*b);
			a++;
			b++;
		}
		if (c)
			return c;
	}
	if (*a || *b)
		return *a ? 1 : -1;
	return strcmp(wholea, wholeb);
}

int field_compare(const struct field *f, const struct snapshot *s, const void *a, const void *b,
		  bool total, bool descending)
{
	struct cell x = f->get(s, a, total), y = f->get(s, b, total);
	bool hasx, hasy;

	if (f->unit == UNIT_TEXT) {
		hasx = x.text && *x.text;
		hasy = y.text && *y.text;
	} else {
		hasx = value_has(x.v) && !isnan(x.v.v);
		hasy = value_has(y.v) && !isnan(y.v.v);
	}
	/* The caller turns the result round for descending order; unknown stays last. */
	if (hasx != hasy)
		return hasx == descending ? 1 : -1;
	if (!hasx)
		return 0;
	if (f->unit == UNIT_TEXT)
		return compare_text(x.text, y.text);
	return x.v.v < y.v.v ? -1 : x.v.v > y.v.v;
}

const char *field_state_text(char state)
{
	static const char letters[][2] = {"R", "S", "D", "T", "t", "X", "Z", "P", "I", "W", "K"};

	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
		if (letters[i][0] == state)
			return letters[i];
	return "";
}

const char *field_vm_name(const struct snapshot *s, int64_t vm)
{
	if (vm < 0 || (size_t)vm >= s->nvms)
		return "";
	return s->vms[vm].name;
}

struct value field_vcpu_number(const struct snapshot *s, int64_t vcpu)
{
	if (vcpu < 0 || (size_t)vcpu >= s->nvcpus)
		return value_pending();
	return value_known(s->vcpus[vcpu].index);
}
