// SPDX-License-Identifier: GPL-2.0-only
/* Samples as text, CSV and JSON (report_samples.h). */
#include <inttypes.h>
#include <stdio.h>

#include "field.h"
#include "out.h"
#include "report_out.h"
#include "report_samples.h"
#include "text.h"
#include "version.h"

#define NAME 512

static double share(const struct report_samples *s, uint64_t n)
{
	return s->all ? 100.0 * (double)n / (double)s->all : 0;
}

const char *report_samples_row_name(const struct report_sample *r, char *buf, size_t size)
{
	if (r->name)
		snprintf(buf, size, "%s", r->name);
	else if (DOMAIN_IS_GUEST(r->domain))
		snprintf(buf, size, "[guest 0x%" PRIx64 "]", r->ip);
	else
		snprintf(buf, size, "%s", r->idle ? "[idle]" : "[host]");
	return buf;
}

void report_samples_put_text(const struct report_samples *s, struct out *o)
{
	char name[NAME], shown[4 * NAME], module[NAME];

	out_printf(o, "# %" PRIu64 " samples:", s->all);
	for (int d = 0; d < DOMAIN_NR; d++)
		out_printf(o, " %s %.2f%%", field_domain_name((enum ip_domain)d),
			   share(s, s->domain[d]));
	out_text(o, "\n");
	if (s->why[0]) {
		text_escape(shown, sizeof(shown), s->why);
		out_printf(o, "# %s\n", shown);
	}
	out_printf(o, "%10s %7s %-13s %-24s %s\n", "SAMPLES", "SHARE", "DOMAIN", "MODULE",
		   "SYMBOL");
	for (size_t i = 0; i < s->n; i++) {
		const struct report_sample *r = &s->row[i];

		report_samples_row_name(r, name, sizeof(name));
		text_escape(shown, sizeof(shown), name);
		text_escape_word(module, sizeof(module), r->module ? r->module : "");
		out_printf(o, "%10" PRIu64 " %7.2f %-13s %-24s ", r->n, share(s, r->n),
			   field_domain_name(r->domain), module);
		out_text(o, shown);
		out_text(o, "\n");
	}
}

void report_samples_put_csv(const struct report_samples *s, struct out *o)
{
	char name[NAME], shown[4 * NAME];

	out_text(o, "domain,symbol,module,samples,pct\n");
	for (size_t i = 0; i < s->n; i++) {
		const struct report_sample *r = &s->row[i];

		report_samples_row_name(r, name, sizeof(name));
		text_escape_csv(shown, sizeof(shown), name);
		out_printf(o, "%s,", field_domain_name(r->domain));
		out_text(o, shown);
		text_escape_csv(shown, sizeof(shown), r->module ? r->module : "");
		out_text(o, ",");
		out_text(o, shown);
		out_printf(o, ",%" PRIu64 ",%.4f\n", r->n, share(s, r->n));
	}
}

void report_samples_put_json(const struct report_samples *s, const char *file, struct out *o)
{
	char name[NAME];

	out_printf(o, "{\"schema\":1,\"version\":\"%s\",\"file\":", KVMTOP_VERSION);
	report_json_text(o, file);
	out_printf(o, ",\"samples\":%" PRIu64 ",\"symbols\":[", s->all);
	for (size_t i = 0; i < s->n; i++) {
		const struct report_sample *r = &s->row[i];

		report_samples_row_name(r, name, sizeof(name));
		out_printf(o, "%s{\"domain\":\"%s\",\"symbol\":", i ? "," : "",
			   field_domain_name(r->domain));
		report_json_text(o, name);
		out_text(o, ",\"module\":");
		report_json_text(o, r->module ? r->module : "");
		out_printf(o, ",\"samples\":%" PRIu64 ",\"pct\":%.4f}", r->n, share(s, r->n));
	}
	out_text(o, "]}\n");
}
