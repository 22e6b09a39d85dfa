// SPDX-License-Identifier: GPL-2.0-only
/* The batch formats over a made snapshot with a hostile name in it (src/format_*.c). */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "format.h"
#include "made.h"
#include "out_text.h"
#include "when.h"

struct asked {
	const char *table, *fields, *sort, *vm, *when;
	bool reverse, total, whole;
	bool less; /* CPUs are not known, and the first VM is a guess */
	bool blind; /* VMs could not be looked for */
	bool no_pmu; /* nothing tells of guests' PMUs */
	int records;
};

/* What a format writes of the made snapshot; to be freed. */
static char *record(const struct format *f, struct asked a)
{
	struct filter *filter = filter_new();
	struct format_job job = {.fields = a.fields, .whole = a.whole};
	struct format_state *state = NULL;
	char err[400] = "";
	int fd;
	struct out *o = out_text_begin(&fd);
	struct made m;

	made_fill(&m);
	if (a.less) {
		m.vm[0].quality |= SNAP_QUALITY_GUESSED;
		m.s.host.ncpu = 0;
	}
	m.s.host.pmu_why = "kvm.enable_pmu=N";
	if (a.blind) {
		m.s.nvms = m.s.nvcpus = m.s.nexits = m.s.nfindings = 0;
		m.source[0].name = "vms";
	}
	if (a.no_pmu)
		m.source[0] = (struct snap_source){.name = "vpmu",
						   .state = SOURCE_OFF,
						   .why = "debugfs/kvm is \x1bgone",
						   .mend = "mount it"};
	job.query = (struct batch_query){
		.table = batch_table_find(a.table ? a.table : f->default_table),
		.filter = filter,
		.sort = a.sort,
		.reverse = a.reverse,
		.total = a.total,
		.as_screen = f == &format_text};
	if (a.vm)
		assert_int_equal(filter_add_vm(filter, a.vm, err, sizeof(err)), 0);
	if (a.when)
		assert_int_equal(
			when_parse(a.when, job.query.table, &job.query.when, err, sizeof(err)), 0);
	if (f->open(&job, &state, err, sizeof(err)))
		fail_msg("%s", err);
	for (int i = 0; i < (a.records ? a.records : 1); i++)
		assert_int_equal(f->record(state, o, &m.s), 0);
	f->close(state);
	when_free(job.query.when);
	filter_free(filter);
	return out_text_end(o, fd);
}

static void expect(const struct format *f, struct asked a, const char *want)
{
	char *got = record(f, a);

	assert_string_equal(got, want);
	free(got);
}

#define SAFE "=evil,\\x20\"x\"\\n\\e[31m\\xff\\u009b\\u202e;$(reboot)"
#define HOST                                                                                       \
	"# 2026-11-29T15:02:03.512+00:00 node17 1.000s 2 CPU 2 VM 4 vCPU usr 3.1 sys - irq - "     \
	"wa - st - guest - idle 30.8 steal 4.2 lost 3\n"
#define MISSING "# ? tracefs: not mounted: mount it\n"
#define FOUND "# ! VM x: 60% steal\n" /* of the first VM */

static void text(void **state)
{
	(void)state;
	expect(&format_text,
	       (struct asked){
		       .fields = "name,nvcpu,cpu_pct,guest_pct,sys_pct,steal_max_pct,exit_pct,why"},
	       HOST FOUND MISSING
	       "TIME     VM                   vCPU   %CPU %GUEST  %SYS   MAX@v %EXIT WHY\n"
	       "15:02:03 " SAFE "    2  100.0  ~50.0     -   60.2!   n/a steal:31%\n"
	       "15:02:03 web01                   2  371.2 ~185.6     -   11.9!   n/a steal:31%\n"
	       "15:02:03 (other)                 -   98.0      -     -       -     - "
	       "ceph-osd:22%\n");
	expect(&format_text,
	       (struct asked){.table = "vcpu", .fields = "vm,vcpu,steal_pct,comm", .vm = "web01"},
	       HOST MISSING "TIME     VM                   vCPU %STEAL THREAD\n"
			    "15:02:03 web01                   1  20.0q CPU\\x200/KVM\n"
			    "15:02:03 web01                   0    0.0 CPU\\x200/KVM\n");
	expect(&format_text,
	       (struct asked){.table = "exit",
			      .fields = "vm,kind,key,count,avg_ns,time_pct",
			      .sort = "count"},
	       HOST FOUND MISSING
	       "TIME     VM                   KIND      REASON                 COUNT    AVG  "
	       "TIME%\n"
	       "15:02:03 web01                ioport    0x3f8:POUT                 9    n/a    "
	       "n/a\n"
	       "15:02:03 (all)                vmexit    EPT_VIOLATION              8 1.50us      "
	       "-\n"
	       "15:02:03 web01                vmexit    EPT_VIOLATION              7 1.50us      "
	       "-\n"
	       "15:02:03 " SAFE " ioport    0x60:PIN                   2    n/a    n/a\n"
	       "15:02:03 " SAFE " vmexit    PF_excp                    1 1.50us      -\n");
}

static void text_of_a_host_half_known(void **state)
{
	char *got = record(&format_text, (struct asked){.less = true});

	(void)state;
	assert_non_null(strstr(got, " 1.000s - CPU ~2 VM 4 vCPU "));
	free(got);
}

/* Why there are none, where the table has no rows; and first why a counter may lie. */
static void text_of_pmus_says_why(void **state)
{
	char *got = record(&format_text, (struct asked){.table = "pmu"});

	(void)state;
	assert_non_null(strstr(got,
			       "\n# pmu: kvm.enable_pmu=N\n# pmu: no counters: no guest that is "
			       "asked for has touched its PMU since kvmtop looks\nTIME "));
	free(got);
	got = record(&format_text, (struct asked){.table = "pmu", .no_pmu = true});
	assert_non_null(strstr(got, "# pmu: no counters: debugfs/kvm is \\egone\n"));
	free(got);
	got = record(&format_text, (struct asked){.table = "vm"});
	assert_null(strstr(got, "# pmu"));
	free(got);
}

/* 1234.5 a second: the digit behind the point says nothing. */
static void text_of_a_large_rate(void **state)
{
	(void)state;
	expect(&format_text,
	       (struct asked){.table = "vm", .fields = "name,exits_per_s", .vm = "web01"},
	       HOST MISSING "TIME     VM                   EXIT/s\n"
			    "15:02:03 web01                  1234\n");
}

static void text_has_no_blanks_in_cells(void **state)
{
	(void)state;
	for (size_t i = 0; i < batch_ntables; i++) {
		char *got = record(&format_text, (struct asked){.table = batch_tables[i].name});
		size_t columns = 0;

		for (char *line = strtok(got, "\n"); line; line = strtok(NULL, "\n")) {
			size_t n = 0;

			if (*line == '#')
				continue;
			for (char *p = line; *p; n++) {
				p += strspn(p, " ");
				p += strcspn(p, " ");
			}
			assert_true(!columns || n == columns);
			columns = n;
		}
		assert_true(columns > 2);
		free(got);
	}
}

static json_t *json(struct asked a)
{
	char *got = record(&format_json, a);
	json_error_t error;
	json_t *v;

	for (const char *p = got; *p; p++) /* nothing that a terminal acts on */
		assert_true((*p >= ' ' && *p < 0x7f) || (*p == '\n' && !p[1]));
	v = json_loads(got, 0, &error);
	if (!v)
		fail_msg("%s in %s", error.text, got);
	free(got);
	return v;
}

static const json_t *at(const json_t *v, const char *path)
{
	char buf[128];

	snprintf(buf, sizeof(buf), "%s", path);
	for (char *p = strtok(buf, "."); p; p = strtok(NULL, "."))
		v = json_is_array(v) ? json_array_get(v, (size_t)atoi(p)) : json_object_get(v, p);
	if (!v)
		fail_msg("no %s", path);
	return v;
}

/* Rows of all VMs together: their level is host, and nothing of them where some VMs are asked for.
 */
static void exits_of_the_host(void **state)
{
	json_t *v;

	(void)state;
	expect(&format_csv,
	       (struct asked){.table = "exit", .fields = "kind,count", .when = "count=8"},
	       "time,interval_s,node,level,vm,vm_id,pid,vcpu,table,key,kind,count\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,host,,,,,exit,EPT_VIOLATION,vmexit,8\n");
	v = json((struct asked){.table = "exit", .when = "count>7"});
	assert_int_equal(json_array_size(at(v, "host.exits")), 1);
	assert_string_equal(json_string_value(at(v, "host.exits.0.key")), "EPT_VIOLATION");
	assert_int_equal(json_integer_value(at(v, "host.exits.0.count")), 8);
	assert_int_equal(json_array_size(at(v, "vms.0.exits")), 1); /* 9 at a port */
	json_decref(v);
	v = json((struct asked){.whole = true, .total = true});
	assert_int_equal(json_integer_value(at(v, "host.exits.0.count")), 80);
	json_decref(v);
	v = json((struct asked){.whole = true, .vm = "web01"});
	assert_null(json_object_get(at(v, "host"), "exits"));
	json_decref(v);
	v = json((struct asked){.table = "vm"});
	assert_null(json_object_get(at(v, "host"), "exits"));
	json_decref(v);
}

static void csv(void **state)
{
	(void)state;
	expect(&format_csv,
	       (struct asked){.fields = "cpu_pct,guest_pct,exit_pct,p99_ns,tid", .records = 1},
	       "time,interval_s,node,level,vm,vm_id,pid,vcpu,table,key,cpu_pct,guest_pct,exit_pct,"
	       "p99_ns,tid\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,vm,web01,"
	       "6f1c2c1e-0000-4000-8000-000000000001,4711,,cpu,,371.240,185.620,,48200,\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,vcpu,web01,"
	       "6f1c2c1e-0000-4000-8000-000000000001,4711,0,cpu,,100.000,,,48200,100\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,vcpu,web01,"
	       "6f1c2c1e-0000-4000-8000-000000000001,4711,1,cpu,,80.000,,,48200,101\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,vm,"
	       "\"\\x3devil, \"\"x\"\"\\n\\e[31m\\xff\\u009b\\u202e;$(reboot)\",77-12345,77,,cpu,,"
	       "100.000,50.000,,48200,\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,vcpu,"
	       "\"\\x3devil, \"\"x\"\"\\n\\e[31m\\xff\\u009b\\u202e;$(reboot)\",77-12345,77,0,cpu,,"
	       "60.000,,,48200,102\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,vcpu,"
	       "\"\\x3devil, \"\"x\"\"\\n\\e[31m\\xff\\u009b\\u202e;$(reboot)\",77-12345,77,1,cpu,,"
	       "40.000,,,48200,103\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,other,(other),,,,cpu,,98.000,,,,\n");
	expect(&format_csv,
	       (struct asked){.table = "exit",
			      .fields = "kind,count,avg_ns",
			      .vm = "web01",
			      .total = true},
	       "time,interval_s,node,level,vm,vm_id,pid,vcpu,table,key,kind,count,avg_ns\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,vm,web01,"
	       "6f1c2c1e-0000-4000-8000-000000000001,4711,,exit,EPT_VIOLATION,vmexit,70,1500\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,vm,web01,"
	       "6f1c2c1e-0000-4000-8000-000000000001,4711,,exit,0x3f8:POUT,ioport,90,\n");
}

/* No column twice, and every row as wide as the head, in every table. */
static void csv_is_a_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < batch_ntables; i++) {
		char *got = record(
			&format_csv,
			(struct asked){.table = batch_tables[i].name, .vm = "web01", .records = 2});
		char *line, *all = got;
		size_t columns = 0;

		while ((line = strsep(&all, "\n")) && *line) {
			size_t n = 1;

			for (const char *p = line, *q = ""; *p; p++) {
				if (*p == '"')
					q = *q ? "" : "\"";
				n += *p == ',' && !*q;
			}
			assert_true(!columns || n == columns);
			columns = n;
		}
		free(got);
	}
}

static void json_has_all(void **state)
{
	json_t *v = json((struct asked){.whole = true});

	(void)state;
	assert_string_equal(json_string_value(at(v, "time")), "2026-11-29T15:02:03.512+00:00");
	assert_int_equal(json_integer_value(at(v, "lost")), 3);
	assert_int_equal(json_array_size(at(v, "vms")), 2);
	assert_float_equal(json_real_value(at(v, "vms.0.cpu_pct")), 371.24, 1e-9);
	assert_true(json_is_integer(at(v, "vms.0.p99_ns")));
	assert_true(json_is_null(at(v, "vms.0.exit_pct")));
	assert_true(json_is_null(at(v, "vms.1.uuid")));
	assert_string_equal(json_string_value(at(v, "vms.1.name")),
			    "=evil, \"x\"\n\x1b[31m\\xff\xc2\x9b\xe2\x80\xae;$(reboot)");
	assert_int_equal(json_integer_value(at(v, "vms.1.vcpus.1.kvm_id")), 4);
	assert_true(json_is_true(at(v, "vms.0.vcpus.1.own_quota")));
	assert_string_equal(json_string_value(at(v, "vms.0.exits.0.key")), "EPT_VIOLATION");
	assert_int_equal(json_integer_value(at(v, "vms.0.exits.0.avg_ns")), 1500);
	assert_true(json_is_null(at(v, "vms.0.exits.1.avg_ns")));
	assert_string_equal(json_string_value(at(v, "findings.0.since")),
			    "2026-11-29T15:02:00.512+00:00");
	assert_string_equal(json_string_value(at(v, "findings.0.vm_id")), "77-12345");
	assert_string_equal(json_string_value(at(v, "cpus.0.vcpus")), "web01/0");
	json_decref(v);
}

static void json_says_each_reason_once(void **state)
{
	json_t *v = json((struct asked){.whole = true});
	const json_t *sources = at(v, "sources"), *s;
	size_t i, seen = 0;

	(void)state;
	json_array_foreach(sources, i, s)
	{
		const char *why = json_string_value(json_object_get(s, "why"));

		if (!strstr(why, "kvm_entry"))
			continue;
		seen++;
		assert_string_equal(json_string_value(at(s, "fields.0")), "vm.exit_pct");
	}
	assert_int_equal(seen, 1);
	json_decref(v);
}

/* Each reason there is, to the last. */
static void json_says_that_nobody_could_look(void **state)
{
	json_t *v = json((struct asked){.table = "host", .blind = true});
	const json_t *s;
	size_t i, seen = 0;

	(void)state;
	assert_true(json_is_null(at(v, "host.nvm")));
	json_array_foreach(at(v, "sources"), i, s)
	{
		if (strcmp(json_string_value(at(s, "why")), "VMs could not be looked for") != 0)
			continue;
		seen++;
		assert_string_equal(json_string_value(at(s, "fields.0")), "host.nvm");
	}
	assert_int_equal(seen, 1);
	json_decref(v);
}

static void json_parts_follow_the_table(void **state)
{
	json_t *v = json((struct asked){.table = "vcpu", .fields = "steal_pct", .vm = "web01"});

	(void)state;
	assert_int_equal(json_array_size(at(v, "vms")), 1);
	assert_null(json_object_get(at(v, "vms.0"), "exits"));
	assert_null(json_object_get(at(v, "vms.0"), "cpu_pct"));
	assert_null(json_object_get(at(v, "vms.0.vcpus.0"), "cpu_pct"));
	assert_float_equal(json_real_value(at(v, "vms.0.vcpus.1.steal_pct")), 20, 0);
	assert_null(json_object_get(v, "cpus"));
	assert_int_equal(json_array_size(at(v, "findings")), 0); /* of another VM */
	json_decref(v);
}

static void when_leaves_rows_out(void **state)
{
	json_t *v = json((struct asked){.table = "vcpu", .when = "steal>50"});

	(void)state;
	assert_int_equal(json_array_size(at(v, "vms")), 1);
	assert_int_equal(json_integer_value(at(v, "vms.0.pid")), 77);
	assert_int_equal(json_array_size(at(v, "vms.0.vcpus")), 1);
	json_decref(v);
	expect(&format_json, (struct asked){.whole = true, .when = "steal_max_pct>90"}, "");
	expect(&format_text, (struct asked){.when = "steal_max_pct>90"}, "");
	expect(&format_csv, (struct asked){.table = "vm", .fields = "nvcpu", .when = "pid=4711"},
	       "time,interval_s,node,level,vm,vm_id,pid,vcpu,table,key,nvcpu\n"
	       "2026-11-29T15:02:03.512+00:00,1.000,node17,vm,web01,"
	       "6f1c2c1e-0000-4000-8000-000000000001,4711,,vm,,2\n");
}

static void sorts(void **state)
{
	static const struct {
		const char *sort;
		bool reverse;
		int first;
	} rows[] = {{NULL, false, 4711}, {NULL, true, 77},	{"pid", false, 77},
		    {"pid", true, 4711}, {"%CPU", false, 4711}, {"%CPU", true, 77},
		    {"steal", false, 77}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *v = json((struct asked){
			.table = "vm", .sort = rows[i].sort, .reverse = rows[i].reverse});

		assert_int_equal(json_integer_value(at(v, "vms.0.pid")), rows[i].first);
		json_decref(v);
	}
}

static void a_full_disk_is_told(void **state)
{
	int fd = open("/dev/full", O_WRONLY);
	struct out *o = out_new(fd, -1, 0);

	(void)state;
	out_text(o, "x");
	assert_int_equal(out_flush(o), -28);
	assert_int_equal(out_flush(o), -28); /* and is not forgotten */
	out_free(o);
	close(fd);
}

/* Nobody reads, and the end is asked for: the write gives up after its grace. */
static void a_stuck_pipe_ends(void **state)
{
	int data[2], stop[2];
	struct out *o;
	char *large = malloc(300000);

	(void)state;
	assert_int_equal(pipe(data) | pipe(stop), 0);
	assert_int_equal(write(stop[1], "x", 1), 1);
	o = out_new(data[1], stop[0], 50);
	memset(large, 'x', 300000);
	out_bytes(o, large, 300000);
	assert_int_equal(out_flush(o), -4);
	out_free(o);
	free(large);
	for (int i = 0; i < 2; i++) {
		close(data[i]);
		close(stop[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text),
		cmocka_unit_test(text_has_no_blanks_in_cells),
		cmocka_unit_test(text_of_a_large_rate),
		cmocka_unit_test(text_of_a_host_half_known),
		cmocka_unit_test(text_of_pmus_says_why),
		cmocka_unit_test(exits_of_the_host),
		cmocka_unit_test(csv),
		cmocka_unit_test(csv_is_a_table),
		cmocka_unit_test(json_has_all),
		cmocka_unit_test(json_says_each_reason_once),
		cmocka_unit_test(json_says_that_nobody_could_look),
		cmocka_unit_test(json_parts_follow_the_table),
		cmocka_unit_test(when_leaves_rows_out),
		cmocka_unit_test(sorts),
		cmocka_unit_test(a_full_disk_is_told),
		cmocka_unit_test(a_stuck_pipe_ends),
	};

	setenv("TZ", "UTC0", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
