// SPDX-License-Identifier: GPL-2.0-only
/* `kvmtop doctor` as text and as one JSON object. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "format.h"
#include "format_doctor.h"
#include "text.h"
#include "version.h"

static const char *state_name(int state)
{
	static const char *const names[] = {"ok", "partial", "off"};

	return names[state >= SOURCE_OK && state <= SOURCE_OFF ? state : SOURCE_OFF];
}

void format_doctor_text(struct out *o, const struct doctor_report *r)
{
	out_text(o, "kvmtop " KVMTOP_VERSION "\n\n");
	for (size_t i = 0; i < r->nfacts; i++) {
		out_printf(o, "%-20s ", r->fact[i].id);
		format_escaped(o, text_escape, r->fact[i].value[0] ? r->fact[i].value : "-");
		out_text(o, "\n");
	}
	out_text(o, "\n");
	for (size_t i = 0; i < r->nlines; i++) {
		const struct doctor_line *l = &r->line[i];

		out_printf(o, "%-8s%-15s%-20s ", state_name(l->probe.state), l->collector,
			   l->probe.source);
		format_escaped(o, text_escape, l->probe.why);
		out_text(o, "\n");
		if (!l->probe.mend[0])
			continue;
		out_printf(o, "%-8s%-15s%-20s ", "", "", "  mend:");
		format_escaped(o, text_escape, l->probe.mend);
		out_text(o, "\n");
	}
}

/* Text that need not be UTF-8; "" is null. */
static json_t *text_value(const char *text)
{
	char buf[4 * PROBE_TEXT];

	if (!*text)
		return json_null();
	text_utf8_clean(buf, sizeof(buf), text);
	return json_string(buf);
}

static json_t *line_object(const struct doctor_line *l)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "collector", l->collector, "source",
			 l->probe.source, "state", state_name(l->probe.state), "why",
			 text_value(l->probe.why), "mend", text_value(l->probe.mend));
}

static int to_out(const char *data, size_t n, void *out)
{
	out_bytes(out, data, n);
	return 0;
}

int format_doctor_json(struct out *o, const struct doctor_report *r)
{
	json_t *all = json_object(), *host = json_object(), *sources = json_array();
	int bad = 0;

	for (size_t i = 0; i < r->nfacts; i++)
		bad |= json_object_set_new(host, r->fact[i].id, text_value(r->fact[i].value));
	for (size_t i = 0; i < r->nlines; i++)
		bad |= json_array_append_new(sources, line_object(&r->line[i]));
	bad |= json_object_set_new(all, "schema", json_integer(1));
	bad |= json_object_set_new(all, "version", json_string(KVMTOP_VERSION));
	bad |= json_object_set_new(all, "host", host);
	bad |= json_object_set_new(all, "sources", sources);
	if (!bad)
		bad = json_dump_callback(all, to_out, o, JSON_INDENT(1) | JSON_ENSURE_ASCII);
	out_text(o, "\n");
	json_decref(all);
	return bad ? -ENOMEM : 0;
}
