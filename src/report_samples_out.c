// SPDX-License-Identifier: GPL-2.0-only
/* Samples as text, CSV and JSON (report_samples.h). */
#include <inttypes.h>
#include <stdio.h>

#include "field.h"
#include "out.h"
#include "report_out.h"
#include "report_recording.h"
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

static void put_head(uint64_t all, const double *domain, struct out *o)
{
	out_printf(o, "# %" PRIu64 " samples:", all);
	for (int d = 0; d < DOMAIN_NR; d++)
		out_printf(o, " %s %.2f%%", field_domain_name((enum ip_domain)d),
			   all ? 100 * domain[d] / (double)all : 0);
	out_text(o, "\n");
}

static void put_titles(struct out *o)
{
	out_printf(o, "%10s %7s %-13s %-24s %s\n", "SAMPLES", "SHARE", "DOMAIN", "MODULE",
		   "SYMBOL");
}

static void put_line(uint64_t n, double pct, unsigned domain, const char *name, const char *module,
		     struct out *o)
{
	char shown[4 * NAME], word[NAME];

	text_escape(shown, sizeof(shown), name);
	text_escape_word(word, sizeof(word), module);
	out_printf(o, "%10" PRIu64 " %7.2f %-13s %-24s ", n, pct,
		   field_domain_name((enum ip_domain)domain), word);
	out_text(o, shown);
	out_text(o, "\n");
}

void report_samples_put_text(const struct report_samples *s, struct out *o)
{
	char name[NAME], shown[4 * NAME];
	double domain[DOMAIN_NR];

	for (int d = 0; d < DOMAIN_NR; d++)
		domain[d] = (double)s->domain[d];
	put_head(s->all, domain, o);
	if (s->why[0]) {
		text_escape(shown, sizeof(shown), s->why);
		out_printf(o, "# %s\n", shown);
	}
	if (s->host_why[0])
		out_printf(o, "# host: %s\n", s->host_why);
	put_titles(o);
	for (size_t i = 0; i < s->n; i++) {
		const struct report_sample *r = &s->row[i];

		put_line(r->n, share(s, r->n), r->domain,
			 report_samples_row_name(r, name, sizeof(name)), r->module ? r->module : "",
			 o);
	}
}

static double recorded_share(const struct recorded_samples *s, uint64_t n)
{
	return s->all ? 100.0 * (double)n / (double)s->all : 0;
}

void report_samples_put_recorded(const struct recorded_samples *s, struct out *o)
{
	put_head(s->all, s->domain, o);
	put_titles(o);
	for (size_t i = 0; i < s->n; i++)
		put_line(s->row[i].n, recorded_share(s, s->row[i].n), s->row[i].domain,
			 s->row[i].name, s->row[i].module, o);
}

void report_samples_put_members(const struct recorded_samples *s, struct out *o)
{
	out_printf(o, ",\"samples\":%" PRIu64 ",\"symbols\":[", s->all);
	for (size_t i = 0; i < s->n; i++) {
		const struct recorded_symbol *r = &s->row[i];
		const char *domain = field_domain_name((enum ip_domain)r->domain);

		out_printf(o, "%s{\"domain\":", i ? "," : "");
		if (r->other)
			out_text(o, "null");
		else
			report_json_text(o, domain);
		out_text(o, ",\"symbol\":");
		report_json_text(o, r->name);
		out_text(o, ",\"module\":");
		report_json_text(o, r->module);
		out_printf(o, ",\"samples\":%" PRIu64 ",\"pct\":%.4f}", r->n,
			   recorded_share(s, r->n));
	}
	out_text(o, "]");
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
