// SPDX-License-Identifier: GPL-2.0-only
/*
 * write_tsc CPU CYCLES: in a QEMU guest of the lab, adds to one CPU's TSC, by writing the MSR
 * itself, and says on standard error what came of that: as much less as passed between reading and
 * writing. IA32_TSC_ADJUST knows it.
 *
 * KVM tells kvm-clock of a new offset when that MSR is written, and not with IA32_TSC: so it is
 * written once more as it is, and the guest's time does not jump with its TSC.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MSR_IA32_TSC 0x10
#define MSR_IA32_TSC_ADJUST 0x3b

static void get(int fd, off_t msr, uint64_t *to)
{
	if (pread(fd, to, sizeof(*to), msr) == sizeof(*to))
		return;
	perror("rdmsr");
	exit(1);
}

static void set(int fd, off_t msr, uint64_t to)
{
	if (pwrite(fd, &to, sizeof(to), msr) == sizeof(to))
		return;
	perror("wrmsr");
	exit(1);
}

int main(int argc, char **argv)
{
	uint64_t tsc, before, after;
	char path[40];
	int fd;

	if (argc != 3)
		return 2;
	snprintf(path, sizeof(path), "/dev/cpu/%d/msr", atoi(argv[1]));
	fd = open(path, O_RDWR);
	get(fd, MSR_IA32_TSC_ADJUST, &before);
	get(fd, MSR_IA32_TSC, &tsc);
	set(fd, MSR_IA32_TSC, tsc + (uint64_t)strtoll(argv[2], NULL, 10));
	get(fd, MSR_IA32_TSC_ADJUST, &after);
	set(fd, MSR_IA32_TSC_ADJUST, after);
	fprintf(stderr, "%lld\n", (long long)(after - before));
	return 0;
}
