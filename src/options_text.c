// SPDX-License-Identifier: GPL-2.0-only
/* What is made from the option, command and field tables: help, completions, dumps for tests. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "batch_table.h"
#include "collector.h"
#include "commands.h"
#include "format_prom_names.h"
#include "keymap.h"
#include "options.h"
#include "pane.h"

#define HELP_WIDTH 79 /* of a terminal of 80 columns */
#define HELP_COLUMN 26
#define HELP_SIZE 1024 /* of an option, its list of tables filled in */
#define FIELD_COLUMN 30 /* of --fields help */

/* Text from `column` on, broken between words; `at` columns of its first line are taken. */
static void put_wrapped(FILE *to, const char *text, int at, int column)
{
	int col = column;

	if (at > column - 2)
		fprintf(to, "\n%*s", column, "");
	else
		fprintf(to, "%*s", column - at, "");
	while (*text) {
		int len = (int)strcspn(text, " ");
		bool first = col == column;

		if (!first && col + 1 + len > HELP_WIDTH) {
			fprintf(to, "\n%*s", column, "");
			col = column;
			first = true;
		}
		fprintf(to, "%s%.*s", first ? "" : " ", len, text);
		col += len + !first;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', to);
}

/* The row's help with the names of all tables in the place of "@tables". */
static const char *help_of(const struct option_row *r, char *buf, size_t size)
{
	static const char word[] = "@tables";
	const char *at = strstr(r->help, word);
	size_t n;

	if (!at)
		return r->help;
	snprintf(buf, size, "%.*s", (int)(at - r->help), r->help);
	for (size_t i = 0; i < batch_ntables; i++) {
		n = strlen(buf);
		snprintf(buf + n, size - n, "%s%s",
			 i == 0			  ? ""
			 : i + 1 == batch_ntables ? " or "
						  : ", ",
			 batch_tables[i].name);
	}
	n = strlen(buf);
	snprintf(buf + n, size - n, "%s", at + sizeof(word) - 1);
	return buf;
}

static void put_option(FILE *to, const struct option_row *r)
{
	char head[64], help[HELP_SIZE];
	int n;

	if (r->letter < 256)
		n = snprintf(head, sizeof(head), "  -%c, --%s", r->letter, r->name);
	else
		n = snprintf(head, sizeof(head), "      --%s", r->name);
	if (r->arg)
		n += snprintf(head + n, sizeof(head) - (size_t)n, " %s", r->arg);
	fputs(head, to);
	put_wrapped(to, help_of(r, help, sizeof(help)), n, HELP_COLUMN);
}

static const char *words_of(const struct command *c)
{
	return c->words ? c->words : "[OPTION]...";
}

static void put_end(FILE *to)
{
	fputs("\nExit status: 0 fine, 1 a run-time failure, 2 wrong usage, 3 --when matched.\n",
	      to);
}

/* Its own options only. */
static void command_help(FILE *to, const struct command *c)
{
	fprintf(to, "usage: kvmtop %s %s%s\n\n", c->word, c->words ? "[OPTION]... " : "",
		words_of(c));
	put_wrapped(to, c->what, 0, 2);
	fputc('\n', to);
	for (size_t i = 0; i < option_nrows; i++)
		if (!option_rows[i].hidden && option_rows[i].commands & c->bit)
			put_option(to, &option_rows[i]);
	put_end(to);
}

static void whole_help(FILE *to)
{
	fputs("usage: kvmtop [OPTION]...            the full screen\n"
	      "       kvmtop --batch [OPTION]...    figures on standard output\n",
	      to);
	for (const struct command *c = commands; c->run; c++)
		if (c->word)
			fprintf(to, "       kvmtop %s %s\n", c->word, words_of(c));
	fputs("\nShows which VM and which vCPU of a KVM host is starved or leaves guest mode\n"
	      "too often, and why.\n\n",
	      to);
	for (const struct command *c = commands; c->run; c++) {
		if (!c->word)
			continue;
		fprintf(to, "  %s", c->word);
		put_wrapped(to, c->what, 2 + (int)strlen(c->word), HELP_COLUMN);
	}
	fputs("\nA command's own options: kvmtop COMMAND --help. All of them:\n\n", to);
	for (size_t i = 0; i < option_nrows; i++)
		if (!option_rows[i].hidden)
			put_option(to, &option_rows[i]);
	put_end(to);
}

const struct command *options_helped(char *const *argv)
{
	for (argv++; *argv && strcmp(*argv, "--") != 0; argv++)
		for (const struct command *c = commands; c->run; c++)
			if (c->word && strcmp(c->word, *argv) == 0)
				return c;
	return NULL;
}

void options_help(FILE *to, const struct command *c)
{
	if (c && c->word)
		command_help(to, c);
	else
		whole_help(to);
}

static void put_fields(FILE *to, enum field_table t)
{
	const struct field_list *l = field_list(t);

	for (size_t i = 0; i < l->n; i++) {
		char head[64];
		int n = snprintf(head, sizeof(head), "  %-15s %s", l->field[i].id,
				 l->field[i].title);

		fputs(head, to);
		put_wrapped(to, l->field[i].help, n, FIELD_COLUMN);
	}
}

void options_fields_help(FILE *to)
{
	static const struct {
		enum field_table t;
		const char *tables;
	} parts[] = {
		{TABLE_VM, "vm, cpu"},
		{TABLE_VCPU, "vcpu, cpu"},
		{TABLE_EXIT, "exit, vcpu-exit"},
		{TABLE_CODE, "exit-code"},
		{TABLE_SLOW, "slow"},
		{TABLE_SYMBOL, "symbol, vcpu-symbol"},
		{TABLE_WAITED, "waited, vcpu-waited"},
		{TABLE_PMU, "pmu"},
		{TABLE_HOST, "host"},
		{TABLE_CPU, "pcpu"},
		{TABLE_THREAD, "thread"},
		{TABLE_TASK, "task"},
		{TABLE_FINDING, "finding"},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		fprintf(to, "%s--table %s\n", i ? "\n" : "", parts[i].tables);
		put_fields(to, parts[i].t);
	}
}

/* --- completions --- */

static void put_tables(FILE *to)
{
	for (size_t i = 0; i < batch_ntables; i++)
		fprintf(to, "%s%s", i ? " " : "", batch_tables[i].name);
}

static void put_field_ids(FILE *to)
{
	const struct field_list *vm = field_list(TABLE_VM), *vcpu = field_list(TABLE_VCPU);

	for (size_t i = 0; i < vm->n; i++)
		fprintf(to, "%s ", vm->field[i].id);
	for (size_t i = 0; i < vcpu->n; i++)
		if (strcmp(field_find(TABLE_VM, vcpu->field[i].id)
				   ? field_find(TABLE_VM, vcpu->field[i].id)->id
				   : "",
			   vcpu->field[i].id) != 0)
			fprintf(to, "%s ", vcpu->field[i].id);
	fputs("help", to);
}

static void put_collectors(FILE *to)
{
	for (size_t i = 0; collectors[i]; i++)
		fprintf(to, "%s%s", i ? " " : "", collectors[i]->name);
}

static bool is_one_of(const struct option_row *r, const char *values)
{
	return r->values && strcmp(r->values, values) == 0;
}

/* The words that an option's value is chosen from; false: any. */
static bool put_values(FILE *to, const struct option_row *r)
{
	if (!r->values || is_one_of(r, "@pids") || is_one_of(r, "@files") || is_one_of(r, "@path"))
		return false;
	if (strcmp(r->values, "@tables") == 0)
		put_tables(to);
	else if (strcmp(r->values, "@fields") == 0)
		put_field_ids(to);
	else if (strcmp(r->values, "@collectors") == 0)
		put_collectors(to);
	else
		fputs(r->values, to);
	return true;
}

static void put_words(FILE *to)
{
	for (const struct command *c = commands; c->run; c++)
		if (c->word)
			fprintf(to, "%s ", c->word);
}

static void completion_bash(FILE *to)
{
	fputs("# bash completion for kvmtop; made by: kvmtop --completion bash\n"
	      "_kvmtop()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\tlocal words\n\n\tcase $prev in\n",
	      to);
	for (size_t i = 0; i < option_nrows; i++) {
		const struct option_row *r = &option_rows[i];

		if (r->hidden || !r->arg)
			continue;
		fprintf(to, "\t--%s", r->name);
		if (r->letter < 256)
			fprintf(to, "|-%c", r->letter);
		fputs(")\n\t\twords='", to);
		put_values(to, r);
		fputs("'\n", to);
		if (is_one_of(r, "@path"))
			fputs("\t\tcompopt -o default 2>/dev/null\n\t\treturn ;;\n", to);
		else if (is_one_of(r, "@files"))
			fputs("\t\twords=$(compgen -d -- \"$cur\") && mapfile -t COMPREPLY "
			      "<<<\"$words\"\n"
			      "\t\treturn ;;\n",
			      to);
		else if (is_one_of(r, "@pids"))
			fputs("\t\twords=$(cd /proc && printf '%s ' [0-9]*) ;;\n", to);
		else
			fputs("\t\t;;\n", to);
	}
	fputs("\t*)\n\t\twords='", to);
	put_words(to);
	for (size_t i = 0; i < option_nrows; i++)
		if (!option_rows[i].hidden)
			fprintf(to, "--%s ", option_rows[i].name);
	fputs("' ;;\n\tesac\n"
	      "\twords=$(compgen -W \"$words\" -- \"$cur\") && mapfile -t COMPREPLY "
	      "<<<\"$words\"\n}\n"
	      "complete -F _kvmtop kvmtop\n",
	      to);
}

/* Help inside single quotes of a shell; brackets and colons mean something to zsh. */
static void put_quoted(FILE *to, const char *text, const char *escape)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", to);
		else if (strchr(escape, *text))
			fprintf(to, "\\%c", *text);
		else
			fputc(*text, to);
	}
}

static void zsh_option(FILE *to, const struct option_row *r)
{
	char help[HELP_SIZE];

	if (r->letter < 256)
		fprintf(to, "\t'(-%c --%s)'{-%c,--%s}'[", r->letter, r->name, r->letter, r->name);
	else
		fprintf(to, "\t'--%s[", r->name);
	put_quoted(to, help_of(r, help, sizeof(help)), "[]:\\");
	fputc(']', to);
	if (r->arg) {
		fprintf(to, ":%s:", r->arg);
		if (is_one_of(r, "@path")) {
			fputs("_files", to);
		} else if (is_one_of(r, "@files")) {
			fputs("_directories", to);
		} else if (is_one_of(r, "@pids")) {
			fputs("_pids", to);
		} else {
			fputc('(', to);
			put_values(to, r);
			fputc(')', to);
		}
	}
	fputs("' \\\n", to);
}

static void completion_zsh(FILE *to)
{
	fputs("#compdef kvmtop\n# made by: kvmtop --completion zsh\n_arguments -s \\\n", to);
	for (size_t i = 0; i < option_nrows; i++)
		if (!option_rows[i].hidden)
			zsh_option(to, &option_rows[i]);
	fputs("\t'1:command:(", to);
	put_words(to);
	fputs(")'\n", to);
}

static void completion_fish(FILE *to)
{
	fputs("# fish completion for kvmtop; made by: kvmtop --completion fish\n"
	      "complete -c kvmtop -f\n",
	      to);
	for (const struct command *c = commands; c->run; c++) {
		if (!c->word)
			continue;
		fprintf(to, "complete -c kvmtop -n __fish_use_subcommand -a %s -d '", c->word);
		put_quoted(to, c->what, "");
		fputs("'\n", to);
	}
	for (size_t i = 0; i < option_nrows; i++) {
		const struct option_row *r = &option_rows[i];
		char help[HELP_SIZE];

		if (r->hidden)
			continue;
		fputs("complete -c kvmtop", to);
		if (r->letter < 256)
			fprintf(to, " -s %c", r->letter);
		fprintf(to, " -l %s", r->name);
		if (r->arg && is_one_of(r, "@path")) {
			fputs(" -r -F", to);
		} else if (r->arg && is_one_of(r, "@files")) {
			fputs(" -x -a '(__fish_complete_directories)'", to);
		} else if (r->arg && is_one_of(r, "@pids")) {
			fputs(" -x -a '(__fish_complete_pids)'", to);
		} else if (r->arg) {
			fputs(" -x -a '", to);
			put_values(to, r);
			fputc('\'', to);
		}
		fputs(" -d '", to);
		put_quoted(to, help_of(r, help, sizeof(help)), "\\");
		fputs("'\n", to);
	}
}

int options_completion(const char *shell, FILE *to)
{
	if (strcmp(shell, "bash") == 0)
		completion_bash(to);
	else if (strcmp(shell, "zsh") == 0)
		completion_zsh(to);
	else if (strcmp(shell, "fish") == 0)
		completion_fish(to);
	else
		return -EINVAL;
	return 0;
}

/* --- dumps for tests and for what is made from the tables --- */

static const char *unit_name(enum field_unit u)
{
	static const char *const names[] = {
		[UNIT_TEXT] = "text", [UNIT_COUNT] = "count",	[UNIT_NUMBER] = "number",
		[UNIT_PCT] = "%",     [UNIT_RATE] = "1/s",	[UNIT_NS] = "ns",
		[UNIT_KB] = "KiB",    [UNIT_RATIO] = "decimal",
	};

	return (unsigned)u < sizeof(names) / sizeof(names[0]) ? names[u] : "";
}

static void dump_fields(FILE *to)
{
	for (int t = 0; t < TABLE_NR; t++) {
		const struct field_list *l = field_list((enum field_table)t);

		for (size_t i = 0; i < l->n; i++)
			fprintf(to, "%s\t%s\t%s\t%s\t%s\n", l->name, l->field[i].id,
				l->field[i].title, unit_name(l->field[i].unit), l->field[i].help);
	}
}

static void dump_options(FILE *to)
{
	for (size_t i = 0; i < option_nrows; i++) {
		const struct option_row *r = &option_rows[i];
		char help[HELP_SIZE];

		fprintf(to, "%s\t%.1s\t%s\t%s\n", r->name,
			r->letter < 256 ? (const char[]){(char)r->letter, '\0'} : "",
			r->arg ? r->arg : "",
			r->hidden ? "hidden" : help_of(r, help, sizeof(help)));
	}
}

/* LEVEL stands where rows of the table are of several. */
static void dump_metrics(FILE *to)
{
	for (int t = 0; t < TABLE_NR; t++) {
		const struct field_list *l = field_list((enum field_table)t);
		struct prom_name name;

		for (size_t i = 0; i < l->n; i++)
			if (prom_name((enum field_table)t, &l->field[i], "LEVEL", &name))
				fprintf(to, "%s\t%s\t%s\n", l->name, l->field[i].id, name.name);
	}
}

static void dump_keys(FILE *to)
{
	size_t n;
	const struct key_row *rows = keymap_rows(&n);
	char buf[80];

	for (size_t i = 0; i < n; i++)
		fprintf(to, "%s\t%s\n", keymap_keys(&rows[i], buf, sizeof(buf)), rows[i].help);
}

static void dump_panes(FILE *to)
{
	size_t n;
	const struct pane *const *all = panes_all(&n);

	for (size_t i = 0; i < n; i++)
		fprintf(to, "%c %s\t%s\n", all[i]->key, all[i]->title, all[i]->help);
}

int options_dump(const char *what, FILE *to)
{
	if (strcmp(what, "options") == 0) {
		dump_options(to);
	} else if (strcmp(what, "fields") == 0) {
		dump_fields(to);
	} else if (strcmp(what, "metrics") == 0) {
		dump_metrics(to);
	} else if (strcmp(what, "commands") == 0) {
		for (const struct command *c = commands; c->run; c++)
			fprintf(to, "%s\t%s\n", c->word ? c->word : "", c->what);
	} else if (strcmp(what, "tables") == 0) {
		for (size_t i = 0; i < batch_ntables; i++)
			fprintf(to, "%s\t%s\n", batch_tables[i].name, batch_tables[i].what);
	} else if (strcmp(what, "collectors") == 0) {
		for (size_t i = 0; collectors[i]; i++)
			fprintf(to, "%s\t%s\n", collectors[i]->name, collectors[i]->what);
	} else if (strcmp(what, "keys") == 0) {
		dump_keys(to);
	} else if (strcmp(what, "panes") == 0) {
		dump_panes(to);
	} else {
		return -EINVAL;
	}
	return 0;
}
