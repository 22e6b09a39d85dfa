// SPDX-License-Identifier: GPL-2.0-only
/* The choice of the event that takes the samples (sampling_event.h). */
#include "sampling_event.h"

#include <stdio.h>

#include "sysroot.h"

/* Names of a CPU's own PMU; hybrid and big.LITTLE machines have one a kind of core. */
static const char *const pmu_names[] = {
	"cpu",		 "cpu_core",	     "armv8_pmuv3",
	"armv8_pmuv3_0", "armv8_cortex_a53", "armv8_cortex_a72",
	"cpum_cf",
};

static bool is_there(const struct sysroot *root, const char *path)
{
	char buf[16];

	return sysroot_read(root, path, buf, sizeof(buf)) > 0;
}

/* A parameter of a module that reads as Y or 1; `missing` where it is not there. */
static bool parameter(const struct sysroot *root, const char *path, bool missing)
{
	char buf[16];

	if (sysroot_read(root, path, buf, sizeof(buf)) <= 0)
		return missing;
	return buf[0] == 'Y' || buf[0] == 'y' || buf[0] == '1';
}

void pmu_facts_read(const struct sysroot *root, struct pmu_facts *out)
{
	static const char *const mediated[] = {
		"sys/module/kvm_intel/parameters/enable_mediated_pmu",
		"sys/module/kvm_amd/parameters/enable_mediated_pmu",
		"sys/module/kvm/parameters/enable_mediated_pmu",
	};
	char path[80];

	*out = (struct pmu_facts){0};
	for (size_t i = 0; i < sizeof(pmu_names) / sizeof(pmu_names[0]); i++) {
		snprintf(path, sizeof(path), "sys/bus/event_source/devices/%s/type", pmu_names[i]);
		out->pmu |= is_there(root, path);
	}
	/* A kernel without the parameter (other architectures, old ones) decides for each guest. */
	out->guests = parameter(root, "sys/module/kvm/parameters/enable_pmu", true);
	for (size_t i = 0; i < sizeof(mediated) / sizeof(mediated[0]); i++)
		out->mediated |= parameter(root, mediated[i], false);
}

void sampling_choose(enum sample_with with, const struct pmu_facts *f, struct sampling_choice *out)
{
	*out = (struct sampling_choice){.why = ""};
	if (with == SAMPLE_CLOCK)
		return;
	if (!f->pmu)
		out->why = "this host has no hardware PMU";
	else if (f->mediated)
		out->why = "the kernel's vPMU is mediated: an event that counts guests would keep "
			   "VMs from starting";
	else if (with == SAMPLE_AUTO && f->guests)
		out->why = "guests may use the PMU themselves";
	else
		out->hw = true;
}

struct perf_event_attr sampling_attr(bool hw, bool host, bool guest, unsigned hz)
{
	struct perf_event_attr a = {
		.type = hw ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
		.config = hw ? PERF_COUNT_HW_CPU_CYCLES : PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = hz,
		.exclude_hv = 1,
	};

	if (hw && host != guest) {
		a.exclude_host = guest;
		a.exclude_guest = host;
	}
	return a;
}

void sampling_attr_caller(struct perf_event_attr *a)
{
	a->sample_type |= PERF_SAMPLE_CALLCHAIN;
	a->sample_max_stack = 2; /* where it was, and who called that */
}

const char *sampling_event_name(bool hw, bool host, bool guest)
{
	if (!hw)
		return "cpu-clock";
	if (host == guest)
		return "cycles";
	return guest ? "cycles:G" : "cycles:H";
}
