// SPDX-License-Identifier: GPL-2.0-only
/* Prompts: filter and search work while they are typed; delay and file name when done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"
#include "ui_priv.h"

static const struct ui_request nothing = {.kind = UI_NONE};

static void save_name(const struct ui *ui, char *out, size_t size)
{
	struct tm tm;
	char at[32] = "";

	if (ui->shown) {
		if (ui->cfg.utc)
			gmtime_r(&ui->shown->wall.tv_sec, &tm);
		else
			localtime_r(&ui->shown->wall.tv_sec, &tm);
		strftime(at, sizeof(at), "-%Y%m%d-%H%M%S", &tm);
	}
	snprintf(out, size, "kvmtop%s.txt", at);
}

void ui_ask(struct ui *ui, enum ui_prompt what)
{
	struct view *v = &ui->view;
	char text[64];

	ui->ask = what;
	switch (what) {
	case ASK_FILTER:
		snprintf(ui->before, sizeof(ui->before), "%s", ui_focus_filter(ui));
		prompt_start(&ui->prompt, "filter", ui_focus_filter(ui));
		break;
	case ASK_SEARCH:
		snprintf(ui->before, sizeof(ui->before), "%s", v->search);
		v->search[0] = '\0';
		prompt_start(&ui->prompt, "search", "");
		break;
	case ASK_DELAY:
		snprintf(text, sizeof(text), "%g", ui->cfg.delay_s);
		prompt_propose(&ui->prompt, "seconds (0.1 to 3600)", text);
		break;
	case ASK_SAVE:
		save_name(ui, text, sizeof(text));
		prompt_start(&ui->prompt, "save screen as", text);
		break;
	case ASK_TIME:
		prompt_start(&ui->prompt, "go to (03:12, -2h ...)", "");
		break;
	case ASK_SLOW:
		prompt_propose(&ui->prompt, "exits longer than (1us to 60s)", "500us");
		break;
	case ASK_NOTHING:
		break;
	}
}

/* Copies what is typed, cut between characters. */
static void take(char *out, const char *text)
{
	size_t at = 0;
	uint32_t cp;

	while (text[at]) {
		size_t n = utf8_next(text + at, &cp);

		if (at + n >= VIEW_TEXT)
			break;
		at += n;
	}
	memcpy(out, text, at);
	out[at] = '\0';
}

static void search_now(struct ui *ui)
{
	struct table_ctx c;
	struct row_list *rows = ui_focus_table(ui, &c);
	int line = rows ? table_selected(&c, rows) : -1;

	/* The row that is selected counts too: begin one before it. */
	if (line < 0 || !ui->view.search[0])
		return;
	table_move(&c, rows, -1);
	if (line == 0)
		table_move(&c, rows, (long)rows->n);
	if (!table_search(&c, rows, false))
		table_move(&c, rows, line - table_selected(&c, rows));
}

static struct ui_request set_delay(struct ui *ui)
{
	char *end;
	double d = strtod(ui->prompt.text, &end);

	if (end == ui->prompt.text || *end || !(d >= 0.1 && d <= 3600)) {
		ui_message(ui, ROLE_WARN, "an interval is 0.1 to 3600 seconds");
		return nothing;
	}
	ui->cfg.delay_s = d;
	return (struct ui_request){.kind = UI_DELAY, .delay_s = d};
}

static void set_slow(struct ui *ui)
{
	if (!text_parse_ns(ui->prompt.text, SLOW_LEAST_NS, SLOW_MOST_NS, &ui->view.slow_ns)) {
		ui_message(ui, ROLE_WARN, "slow is 1us to 60s, as in 500us or 2ms");
		return;
	}
	view_set_pane(&ui->view, '0');
	ui->view.pane_shown = true;
	ui_message(ui, ROLE_NOTICE, "slow exits are looked for: x ends it");
}

static void save(struct ui *ui)
{
	char text[PROMPT_SIZE + 64];
	int r;

	if (!ui->prompt.text[0])
		return;
	r = ui_save_screen(ui, ui->prompt.text);
	if (r < 0)
		snprintf(text, sizeof(text), "%s: %s", ui->prompt.text, strerror(-r));
	else
		snprintf(text, sizeof(text), "saved as %s", ui->prompt.text);
	ui_message(ui, r < 0 ? ROLE_WARN : ROLE_GOOD, text);
}

static struct ui_request done(struct ui *ui, enum ui_prompt what)
{
	if (what == ASK_DELAY)
		return set_delay(ui);
	if (what == ASK_SAVE)
		save(ui);
	if (what == ASK_SLOW)
		set_slow(ui);
	if (what == ASK_TIME && ui->prompt.text[0])
		return (struct ui_request){.kind = UI_GO_TO, .text = ui->prompt.text};
	return nothing;
}

static void changed(struct ui *ui)
{
	if (ui->ask == ASK_FILTER)
		take(ui_focus_filter(ui), ui->prompt.text);
	if (ui->ask == ASK_SEARCH) {
		take(ui->view.search, ui->prompt.text);
		search_now(ui);
	}
}

static void cancelled(struct ui *ui, enum ui_prompt what)
{
	if (what == ASK_FILTER)
		snprintf(ui_focus_filter(ui), VIEW_TEXT, "%s", ui->before);
	if (what == ASK_SEARCH)
		snprintf(ui->view.search, sizeof(ui->view.search), "%s", ui->before);
}

struct ui_request ui_answer_key(struct ui *ui, uint32_t key)
{
	enum ui_prompt what = ui->ask;

	switch (prompt_key(&ui->prompt, key)) {
	case PROMPT_CHANGED:
		changed(ui);
		break;
	case PROMPT_DONE:
		ui->ask = ASK_NOTHING;
		return done(ui, what);
	case PROMPT_CANCELLED:
		ui->ask = ASK_NOTHING;
		cancelled(ui, what);
		break;
	case PROMPT_GOES_ON:
		break;
	}
	return nothing;
}
