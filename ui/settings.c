// SPDX-License-Identifier: GPL-2.0-only
/* The settings file (settings.h). */
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "columns.h"
#include "pane.h"
#include "stream.h"
#include "theme.h"

#define SETTINGS_MAX 65536
#define LINE_SIZE 2048

/* What of a line was not understood, where it is not all of it. */
#define WORD 60

struct target {
	struct table_state *state;
	struct column_choice *columns;
	enum field_table table;
};

/* The table that "vms", "exits" … names: a list's or a pane's. */
static bool find_target(struct view *v, const char *id, struct target *out)
{
	const struct pane *const *panes;
	size_t n;

	for (int i = 0; i < LIST_NR; i++) {
		if (strcmp(list_defs[i].id, id) == 0) {
			*out = (struct target){&v->list[i], &v->list_columns[i],
					       list_defs[i].table};
			return true;
		}
	}
	panes = panes_all(&n);
	for (size_t i = 0; i < n; i++) {
		int at = pane_index(panes[i]->key);

		if (panes[i]->table && strcmp(panes[i]->id, id) == 0) {
			*out = (struct target){&v->pane_state[at], &v->pane_columns[at],
					       panes[i]->table->table};
			return true;
		}
	}
	return false;
}

static char *trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	n = strlen(s);
	while (n && isspace((unsigned char)s[n - 1]))
		s[--n] = '\0';
	return s;
}

static void set_title(char *out, const char *title)
{
	snprintf(out, VIEW_TITLE, "%s", title);
}

/* Names of columns that this version does not have are left out; the first of them is told. */
static bool take_columns(const struct target *t, char *value, char *word)
{
	char *save = NULL;

	t->columns->n = 0;
	for (char *w = strtok_r(value, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		const struct field *f = field_find(t->table, trim(w));

		if (!f && !word[0])
			snprintf(word, WORD, "%s", trim(w));
		if (f && t->columns->n < VIEW_COLUMNS)
			set_title(t->columns->title[t->columns->n++], f->title);
	}
	return t->columns->n > 0 && !word[0];
}

static bool take_sort(const struct target *t, char *value)
{
	static const char word[] = " reverse";
	size_t n = strlen(value), w = sizeof(word) - 1;
	bool reverse = n > w && strcmp(value + n - w, word) == 0;
	const struct field *f;

	if (reverse)
		value[n - w] = '\0';
	f = field_find(t->table, trim(value));
	if (!f)
		return false;
	set_title(t->state->sort, f->title);
	t->state->reverse = reverse;
	return true;
}

static bool take_bool(const char *value, bool *out)
{
	if (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
		return false;
	*out = value[0] == 'y';
	return true;
}

static bool take_pane(struct view *v, const char *value)
{
	if (strlen(value) != 1 || !pane_by_key(value[0]))
		return false;
	view_set_pane(v, value[0]);
	return true;
}

static bool take(struct view *v, char *name, char *value, char *theme, size_t theme_size,
		 char *word)
{
	struct target t;
	struct theme any;
	bool idle;

	if (strncmp(name, "columns.", 8) == 0)
		return find_target(v, name + 8, &t) && take_columns(&t, value, word);
	if (strncmp(name, "sort.", 5) == 0)
		return find_target(v, name + 5, &t) && take_sort(&t, value);
	if (strcmp(name, "pane") == 0)
		return take_pane(v, value);
	if (strcmp(name, "vcpus") == 0)
		return take_bool(value, &v->all_vcpus);
	if (strcmp(name, "totals") == 0)
		return take_bool(value, &v->totals);
	if (strcmp(name, "idle") == 0) {
		if (!take_bool(value, &idle))
			return false;
		v->no_idle = !idle;
		return true;
	}
	if (strcmp(name, "theme") != 0 || !theme_ground(value, &any))
		return false;
	snprintf(theme, theme_size, "%s", value);
	return true;
}

static bool take_line(struct view *v, const char *text, size_t len, char *theme, size_t theme_size,
		      char *word)
{
	char line[LINE_SIZE], *name, *eq;

	word[0] = '\0';
	if (len >= sizeof(line) || memchr(text, '\0', len))
		return false;
	memcpy(line, text, len);
	line[len] = '\0';
	name = trim(line);
	if (!*name || *name == '#')
		return true;
	eq = strchr(name, '=');
	if (!eq)
		return false;
	*eq = '\0';
	return take(v, trim(name), trim(eq + 1), theme, theme_size, word);
}

int settings_parse(const char *text, size_t len, struct view *v, char *theme, size_t theme_size,
		   struct settings_wrong *wrong)
{
	int bad = 0, line = 0;

	if (wrong)
		*wrong = (struct settings_wrong){0};
	if (theme_size)
		theme[0] = '\0';
	while (len) {
		const char *nl = memchr(text, '\n', len);
		size_t n = nl ? (size_t)(nl - text) : len;
		char word[WORD];

		line++;
		if (!take_line(v, text, n, theme, theme_size, word) && !bad++ && wrong) {
			wrong->line = line;
			snprintf(wrong->text, sizeof(wrong->text), "%.*s",
				 word[0] ? (int)strlen(word) : (int)n, word[0] ? word : text);
		}
		n += nl != NULL;
		text += n;
		len -= n;
	}
	return bad;
}

/* The file's text; freed by the caller. -errno in *len's place is negative. */
static char *load(const char *path, ssize_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char *text;

	*len = -errno;
	if (fd < 0)
		return NULL;
	text = malloc(SETTINGS_MAX);
	*len = -EINVAL;
	if (text && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		*len = read(fd, text, SETTINGS_MAX);
	close(fd);
	if (*len < 0) {
		free(text);
		return NULL;
	}
	return text;
}

int settings_read(const char *path, struct view *v, struct settings_wrong *wrong)
{
	char theme[16];
	ssize_t len;
	char *text = load(path, &len);
	int bad;

	if (!text)
		return (int)len;
	bad = settings_parse(text, (size_t)len, v, theme, sizeof(theme), wrong);
	free(text);
	return bad;
}

void settings_theme(const char *path, char *theme, size_t size)
{
	struct view *v = calloc(1, sizeof(*v));
	ssize_t len;
	char *text = v ? load(path, &len) : NULL;

	theme[0] = '\0';
	if (text)
		settings_parse(text, (size_t)len, v, theme, size, NULL);
	free(text);
	free(v);
}

static void put_table(FILE *f, const char *id, const struct table_state *st,
		      const struct column_choice *ch)
{
	if (st->sort[0])
		fprintf(f, "sort.%s = %s%s\n", id, st->sort, st->reverse ? " reverse" : "");
	if (!ch->n)
		return;
	fprintf(f, "columns.%s = ", id);
	for (size_t i = 0; i < ch->n; i++)
		fprintf(f, "%s%s", i ? "," : "", ch->title[i]);
	fputc('\n', f);
}

static void put_all(FILE *f, const struct view *v, const char *theme)
{
	const struct pane *const *panes;
	size_t n;

	fputs("# Written by kvmtop, key W.\n", f);
	for (int i = 0; i < LIST_NR; i++)
		put_table(f, list_defs[i].id, &v->list[i], &v->list_columns[i]);
	panes = panes_all(&n);
	for (size_t i = 0; i < n; i++) {
		int at = pane_index(panes[i]->key);

		/* The pane of the vCPUs has the list's name: its columns are the list's. */
		if (panes[i]->table && strcmp(panes[i]->id, list_defs[LIST_VM_VCPUS].id) != 0)
			put_table(f, panes[i]->id, &v->pane_state[at], &v->pane_columns[at]);
	}
	fprintf(f, "pane = %c\n", v->level == LEVEL_HOST ? v->pane : v->pane_of[LEVEL_HOST]);
	fprintf(f, "vcpus = %s\n", v->all_vcpus ? "yes" : "no");
	fprintf(f, "idle = %s\n", v->no_idle ? "no" : "yes");
	fprintf(f, "totals = %s\n", v->totals ? "yes" : "no");
	if (theme && *theme)
		fprintf(f, "theme = %s\n", theme);
}

/* Makes the folders of a path that are missing; each that is there must be ours or root's. */
static int make_folder(const char *folder)
{
	char dir[PATH_MAX];
	struct stat st;

	if (snprintf(dir, sizeof(dir), "%s", folder) >= (int)sizeof(dir))
		return -ENAMETOOLONG;
	for (char *p = dir + 1;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (stat(dir, &st) < 0) {
			/* Never below a folder of somebody else: the file would be theirs no more.
			 */
			if (errno != ENOENT || mkdir(dir, 0700) < 0)
				return -errno;
		}
		*p = c;
		if (c == '\0')
			break;
	}
	return 0;
}

/* The nearest folder that exists belongs to us? Under sudo with HOME kept it does not. */
static int check_owner(const char *folder)
{
	char dir[PATH_MAX], *slash;
	struct stat st;

	if (snprintf(dir, sizeof(dir), "%s", folder) >= (int)sizeof(dir))
		return -ENAMETOOLONG;
	while (stat(dir, &st) < 0) {
		slash = strrchr(dir, '/');
		if (errno != ENOENT || !slash || slash == dir)
			return -errno;
		*slash = '\0';
	}
	return st.st_uid == geteuid() ? 0 : -EPERM;
}

static int write_file(const char *path, const struct view *v, const char *theme)
{
	char tmp[PATH_MAX];
	FILE *f;
	int fd, r;

	if (snprintf(tmp, sizeof(tmp), "%s.XXXXXX", path) >= (int)sizeof(tmp))
		return -ENAMETOOLONG;
	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	f = fdopen(fd, "w");
	if (!f) {
		r = -errno;
		close(fd);
		unlink(tmp);
		return r;
	}
	errno = 0;
	put_all(f, v, theme);
	r = stream_close(f);
	if (!r && rename(tmp, path) < 0)
		r = -errno;
	if (r)
		unlink(tmp);
	return r;
}

int settings_write(const char *path, const struct view *v, const char *theme)
{
	char folder[PATH_MAX], *slash;
	int r;

	if (snprintf(folder, sizeof(folder), "%s", path) >= (int)sizeof(folder))
		return -ENAMETOOLONG;
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return -EINVAL;
	*slash = '\0';
	r = check_owner(folder);
	if (!r)
		r = make_folder(folder);
	return r ? r : write_file(path, v, theme);
}

bool settings_path(char *out, size_t size)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	/* The specification: a relative path there is to be ignored. */
	if (xdg && xdg[0] == '/')
		n = snprintf(out, size, "%s/kvmtop/kvmtoprc", xdg);
	else if (home && home[0] == '/')
		n = snprintf(out, size, "%s/.config/kvmtop/kvmtoprc", home);
	else
		return false;
	return n > 0 && (size_t)n < size;
}
