// SPDX-License-Identifier: GPL-2.0-only
/* Metrics of a made snapshot (src/format_prometheus.c, src/format_prom_names.c). */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "format.h"
#include "format_prom_names.h"
#include "made.h"
#include "out_text.h"
#include "when.h"

struct asked {
	const char *table, *fields, *vm, *when;
};

/* Of m; to be freed. Without a table it is the whole. */
static char *metrics(const struct made *m, struct asked a)
{
	struct filter *filter = filter_new();
	struct format_job job = {.fields = a.fields, .whole = !a.table};
	struct format_state *state = NULL;
	char err[400] = "";
	int fd;
	struct out *o = out_text_begin(&fd);

	job.query = (struct batch_query){
		.table = batch_table_find(a.table ? a.table : format_prometheus.default_table),
		.filter = filter};
	if (a.vm)
		assert_int_equal(filter_add_vm(filter, a.vm, err, sizeof(err)), 0);
	if (a.when)
		assert_int_equal(
			when_parse(a.when, job.query.table, &job.query.when, err, sizeof(err)), 0);
	if (format_prometheus.open(&job, &state, err, sizeof(err)))
		fail_msg("%s", err);
	assert_int_equal(format_prometheus.record(state, o, &m->s), 0);
	format_prometheus.close(state);
	when_free(job.query.when);
	filter_free(filter);
	return out_text_end(o, fd);
}

static unsigned count(const char *text, const char *part)
{
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, part)) != NULL; p++)
		n++;
	return n;
}

static void has(const struct made *m, struct asked a, const char *part)
{
	char *got = metrics(m, a);

	if (count(got, part) != 1)
		fail_msg("%u times %s in\n%s", count(got, part), part, got);
	free(got);
}

static void has_not(const struct made *m, struct asked a, const char *part)
{
	char *got = metrics(m, a);

	if (strstr(got, part))
		fail_msg("%s in\n%s", part, got);
	free(got);
}

#define WEB01 "vm=\"web01\",vm_id=\"6f1c2c1e-0000-4000-8000-000000000001\""
#define EVIL                                                                                       \
	"vm=\"=evil, "                                                                             \
	"\\\"x\\\"\\\\n\\\\e[31m\\\\xff\\\\u009b\\\\u202e;$(reboot)\",vm_id=\"77-12345\""

static void whole_exposition(void **state)
{
	struct made m;
	char *got;

	(void)state;
	made_fill(&m);
	m.s.since = 3000000000;
	got = metrics(&m, (struct asked){.table = "vm", .fields = "cpu_pct,sys_pct,guest_pct"});
	assert_string_equal(
		got,
		"# HELP kvmtop_build_info the version of kvmtop\n"
		"# TYPE kvmtop_build_info gauge\n"
		"kvmtop_build_info{version=\"0.1.0\"} 1\n"
		"# HELP kvmtop_host_info the host's name, kernel and boot, and where figures come "
		"from\n"
		"# TYPE kvmtop_host_info gauge\n"
		"kvmtop_host_info{node=\"node17\",kernel=\"6.1.0\",boot_id=\"b\",events_by="
		"\"none\"}"
		" 1\n"
		"# HELP kvmtop_time_seconds when the interval ended that the figures are of, Unix "
		"time\n"
		"# TYPE kvmtop_time_seconds gauge\n"
		"kvmtop_time_seconds 1795964523.512\n"
		"# HELP kvmtop_interval_seconds how long it was\n"
		"# TYPE kvmtop_interval_seconds gauge\n"
		"kvmtop_interval_seconds 1.0002\n"
		"# HELP kvmtop_totals_start_time_seconds since when what is called _total was "
		"counted, Unix time\n"
		"# TYPE kvmtop_totals_start_time_seconds gauge\n"
		"kvmtop_totals_start_time_seconds 1795964521.512\n"
		"# HELP kvmtop_vm_cpu_ratio cpu_pct / 100: CPU time of all its threads and kernel "
		"helpers, in percent of one CPU: 100 x run time / interval\n"
		"# TYPE kvmtop_vm_cpu_ratio gauge\n"
		"kvmtop_vm_cpu_ratio{" WEB01 "} 3.7124\n"
		"kvmtop_vm_cpu_ratio{" EVIL "} 1\n"
		"# HELP kvmtop_vm_guest_ratio guest_pct / 100: CPU time in guest mode: %CPU x "
		"guest "
		"ticks / (user + system ticks)\n"
		"# TYPE kvmtop_vm_guest_ratio gauge\n"
		"kvmtop_vm_guest_ratio{" WEB01 "} 1.8562\n"
		"kvmtop_vm_guest_ratio{" EVIL "} 0.5\n"
		"# HELP kvmtop_vm_info a VM: vm_id is what tells VMs of the same name apart\n"
		"# TYPE kvmtop_vm_info gauge\n"
		"kvmtop_vm_info{" WEB01
		",pid=\"4711\",uuid=\"6F1C2C1E-0000-4000-8000-000000000001\",vmm=\"qemu\",cgroup="
		"\"/machine.slice\",steal_source=\"rundelay\"} 1\n"
		"kvmtop_vm_info{" EVIL
		",pid=\"77\",vmm=\"qemu\",cgroup=\"/machine.slice\",steal_source=\"rundelay\"} 1\n"
		"# HELP kvmtop_source_ok 1: a source of figures gives all that it has; 0: kvmtop "
		"doctor says why not, and what mends it\n"
		"# TYPE kvmtop_source_ok gauge\n"
		"kvmtop_source_ok{source=\"tracefs\"} 0\n"
		"# HELP kvmtop_partial_samples samples of this exposition of which a part is "
		"missing "
		"or guessed\n"
		"# TYPE kvmtop_partial_samples gauge\n"
		"kvmtop_partial_samples{reason=\"this kernel does not give it\"} 2\n"
		"# EOF\n");
	free(got);
}

static void usual_families(void **state)
{
	struct asked whole = {0};
	struct made m;

	(void)state;
	made_fill(&m);
	has(&m, whole, "\nkvmtop_host_usr_ratio 0.031\n");
	has(&m, whole, "\nkvmtop_vm_steal_max_ratio{" WEB01 "} 0.119\n");
	has(&m, whole, "\nkvmtop_vcpu_steal_ratio{" EVIL ",vcpu=\"1\"} 0.6\n");
	has(&m, whole,
	    "\nkvmtop_vm_exits_total{" WEB01 ",kind=\"vmexit\",reason=\"EPT_VIOLATION\"} 70\n");
	has(&m, whole, "\nkvmtop_host_exits_total{kind=\"vmexit\",reason=\"EPT_VIOLATION\"} 80\n");
	has(&m, whole,
	    "\nkvmtop_vm_exit_seconds_total{" WEB01
	    ",kind=\"vmexit\",reason=\"EPT_VIOLATION\"} 1.05e-05\n");
	has(&m, whole,
	    "\nkvmtop_finding_seconds{" EVIL ",vcpu=\"1\",rule=\"steal\",level=\"warning\"} 3\n");
	has(&m, whole, "\nkvmtop_vcpu_info{" EVIL ",vcpu=\"1\",kvm_id=\"4\",tid=\"103\",");
	/* Of what would be very many series there are none that were not asked for. */
	has_not(&m, whole, "kvmtop_vm_exit_reason_");
	has_not(&m, whole, "kvmtop_vcpu_exits_total");
	has_not(&m, whole, "kvmtop_vcpu_wait_ratio");
	has(&m, (struct asked){.table = "vcpu", .fields = "cpu"},
	    "\nkvmtop_vcpu_pcpu{" WEB01 ",vcpu=\"0\"} 1\n");
}

/* What is not known has no sample, and no family where nothing is; why is counted. */
static void unknown(void **state)
{
	struct asked exits = {.table = "exit"};
	struct made m;

	(void)state;
	made_fill(&m);
	has_not(&m, (struct asked){.table = "vm"}, "kvmtop_vm_sys_ratio");
	has_not(&m, (struct asked){.table = "vm"}, "kvmtop_vm_exit_ratio");
	has_not(&m, exits, "exit_seconds_total{" WEB01 ",kind=\"ioport\"");
	has(&m, (struct asked){.table = "vm", .fields = "exit_pct"},
	    "\nkvmtop_unknown_figures{reason=\"this KVM fires no kvm_entry and kvm_exit events\"} "
	    "2\n");
	m.vm[0].use.cpu = value_known(0.0 / 0.0);
	m.vm[1].use.cpu = value_known(1.0 / 0.0);
	has_not(&m, (struct asked){.table = "vm"}, "kvmtop_vm_cpu_ratio");
}

static void selection(void **state)
{
	struct made m;
	char *got;

	(void)state;
	made_fill(&m);
	has_not(&m, (struct asked){.vm = "web01"}, "evil");
	has(&m, (struct asked){.vm = "web01"}, "\nkvmtop_vm_cpu_ratio{" WEB01 "}");
	has_not(&m, (struct asked){.table = "vm", .when = "cpu_pct>200"}, "evil");
	got = metrics(&m, (struct asked){.table = "vm", .when = "cpu_pct>900"});
	assert_string_equal(got, "");
	free(got);
}

/* Names are the users' matter: what tells apart is vm_id, and of vCPUs KVM's own number. */
static void of_one_name(void **state)
{
	struct asked a = {.table = "cpu", .fields = "cpu_pct"};
	struct made m;

	(void)state;
	made_fill(&m);
	m.vm[1].name = "web01";
	has(&m, a, "\nkvmtop_vm_cpu_ratio{vm=\"web01\",vm_id=\"77-12345\"} 1\n");
	has(&m, a, "\nkvmtop_vm_cpu_ratio{" WEB01 "} 3.7124\n");
	m.vcpu[1].index = 0;
	has(&m, a, "\nkvmtop_vcpu_cpu_ratio{" WEB01 ",vcpu=\"id:0\"} 1\n");
	has(&m, a, "\nkvmtop_vcpu_cpu_ratio{" WEB01 ",vcpu=\"id:4\"} 0.8\n");
	has(&m, a, "\nkvmtop_vcpu_info{" WEB01 ",vcpu=\"id:4\",kvm_id=\"4\",");
	has(&m, a, "\nkvmtop_vcpu_cpu_ratio{vm=\"web01\",vm_id=\"77-12345\",vcpu=\"0\"} 0.6\n");
	/* Escaping must not make one of two. */
	m.vm[0].vm_id = "a\\n";
	m.vm[1].vm_id = "a\n";
	has(&m, a, "\nkvmtop_vm_cpu_ratio{vm=\"web01\",vm_id=\"a\\\\\\\\n\"} 3.7124\n");
	has(&m, a, "\nkvmtop_vm_cpu_ratio{vm=\"web01\",vm_id=\"a\\\\n\"} 1\n");
}

static struct snap_symbol made_symbol(uint64_t addr, const char *name, uint64_t samples,
				      struct value pct)
{
	return (struct snap_symbol){.vm = 0,
				    .vcpu = -1,
				    .key = {.domain = DOMAIN_GUEST_KERNEL, .value = addr},
				    .name = name,
				    .module = "ext4",
				    .reason = "",
				    .samples = samples,
				    .samples_total = samples * 2,
				    .pct = pct};
}

/* Two static functions of one name are one series, their sum. */
static void of_the_same_labels(void **state)
{
	struct asked a = {.table = "symbol"};
	struct snap_symbol symbols[3];
	struct made m;

	(void)state;
	made_fill(&m);
	symbols[0] = made_symbol(1, "init", 10, value_known(10));
	symbols[1] = made_symbol(2, "exit", 5, value_known(5));
	symbols[2] = made_symbol(3, "init", 30, value_pending());
	m.s.symbols = symbols;
	m.s.nsymbols = 3;
#define OF(name) "{" WEB01 ",domain=\"guest-kernel\",symbol=\"" name "\",module=\"ext4\"}"
	has(&m, a, "\nkvmtop_vm_symbol_samples_total" OF("init") " 80\n");
	has(&m, a, "\nkvmtop_vm_symbol_samples_total" OF("exit") " 10\n");
	has(&m, a, "\nkvmtop_vm_symbol_ratio" OF("init") " 0.1\n");
}

/* --- names --- */

static void of_names(void **state)
{
	static const char *const levels[] = {"host", "vm", "vcpu", "other"};
	char seen[1024][PROM_NAME_SIZE];
	size_t n = 0;

	(void)state;
	for (int t = 0; t < TABLE_NR; t++) {
		const struct field_list *l = field_list((enum field_table)t);
		size_t begin = n;

		for (size_t k = 0; k < 4; k++)
			for (size_t i = 0; i < l->n; i++) {
				struct prom_name x;
				size_t same = 0;

				if (!prom_name((enum field_table)t, &l->field[i], levels[k], &x))
					continue;
				assert_true(
					strspn(x.name, "abcdefghijklmnopqrstuvwxyz0123456789_") ==
					strlen(x.name));
				assert_true(strlen(x.name) < PROM_NAME_SIZE - 1);
				assert_null(strstr(x.name, "_pct"));
				assert_null(strstr(x.name, "_ns"));
				while (same < n && strcmp(seen[same], x.name) != 0)
					same++;
				/* Twice only where a table's rows are all of one level. */
				if (same < n && (k == 0 || same < begin))
					fail_msg("%s twice", x.name);
				assert_true(n < 1024);
				if (same == n)
					snprintf(seen[n++], PROM_NAME_SIZE, "%s", x.name);
			}
	}
	assert_true(n > 200);
}

static void name_is(enum field_table t, const char *id, const char *level, const char *want,
		    bool counter)
{
	struct prom_name x;

	assert_true(prom_name(t, field_find(t, id), level, &x));
	assert_string_equal(x.name, want);
	assert_int_equal(x.counter, counter);
}

static void by_unit(void **state)
{
	struct prom_name x;

	(void)state;
	name_is(TABLE_VM, "cpu_pct", "vm", "kvmtop_vm_cpu_ratio", false);
	name_is(TABLE_HOST, "mem_total_kb", "host", "kvmtop_host_mem_total_bytes", false);
	name_is(TABLE_VCPU, "wake_p99_ns", "vcpu", "kvmtop_vcpu_wake_p99_seconds", false);
	name_is(TABLE_VCPU, "exits_per_s", "vcpu", "kvmtop_vcpu_exits_per_second", false);
	name_is(TABLE_VCPU, "tsc_offset_s", "vcpu", "kvmtop_vcpu_tsc_offset_seconds", false);
	name_is(TABLE_EXIT, "count", "host", "kvmtop_host_exits_total", true);
	name_is(TABLE_EXIT, "p99_ns", "vcpu", "kvmtop_vcpu_exit_reason_p99_seconds", false);
	name_is(TABLE_SYMBOL, "pct", "other", "kvmtop_other_symbol_ratio", false);
	name_is(TABLE_VM, "slow_exits", "vm", "kvmtop_vm_slow_exits_total", true);
	assert_false(prom_name(TABLE_VM, field_find(TABLE_VM, "why"), "vm", &x));
	assert_false(prom_name(TABLE_VM, field_find(TABLE_VM, "pid"), "vm", &x));
	assert_false(prom_name(TABLE_SLOW, field_find(TABLE_SLOW, "took_ns"), "vm", &x));
}

static void refuse(const char *table, const char *fields, const char *part)
{
	char err[300] = "";

	assert_int_equal(format_prometheus_check(batch_table_find(table), fields, err, sizeof(err)),
			 -EINVAL);
	assert_non_null(strstr(err, part));
	assert_null(strchr(err, '\n'));
}

static void refused(void **state)
{
	char err[300] = "";

	(void)state;
	refuse("slow", NULL, "--table slow");
	refuse("vm", "cpu_pct,why", "--fields: why");
	refuse("vcpu", "pin", "--fields: pin");
	refuse("vm", "nothing", "no field 'nothing'");
	for (size_t i = 0; i < batch_ntables; i++)
		if (strcmp(batch_tables[i].name, "slow") != 0)
			assert_int_equal(
				format_prometheus_check(&batch_tables[i], NULL, err, sizeof(err)),
				0);
	assert_int_equal(format_prometheus_check(batch_table_find("cpu"), "name,vcpu,cpu_pct", err,
						 sizeof(err)),
			 0);
	assert_int_equal(
		format_prometheus_check(batch_table_find("pcpu"), "cpu,usr_pct", err, sizeof(err)),
		0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_exposition), cmocka_unit_test(usual_families),
		cmocka_unit_test(unknown),	    cmocka_unit_test(selection),
		cmocka_unit_test(of_one_name),	    cmocka_unit_test(of_the_same_labels),
		cmocka_unit_test(of_names),	    cmocka_unit_test(by_unit),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
