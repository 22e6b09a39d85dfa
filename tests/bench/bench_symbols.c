// SPDX-License-Identifier: GPL-2.0-only
/*
 * What symbols cost: `bench_symbols KALLSYMS` prints the time to load it, that of a lookup at
 * addresses all over the text, and the memory; rows for bench.py, load times without a bound.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bytes.h"
#include "clock.h"
#include "kallsyms.h"

#define LOADS 7
#define LOOKUPS 4000000u

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return timespec_ns(t);
}

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

/* From the file to the map, as the helper thread does it. */
static struct symmap *load(const char *path)
{
	struct symbuild *b = symbuild_new();
	struct kallsyms_facts facts;
	struct symmap *m = NULL;
	struct bytes text;
	int fd = bytes_open(path);

	if (fd < 0 || !b || bytes_read(fd, BYTES_TEXT_MAX, &text) < 0)
		fail("cannot read the file");
	close(fd);
	if (kallsyms_parse(text.data, text.len, b, &facts) < 0 || symbuild_finish(b, NULL, &m) < 0)
		fail("no kallsyms");
	bytes_free(&text);
	return m;
}

/* Addresses uniform over all parts that have symbols, so that caches help as little as they can. */
static uint64_t *make_addresses(const struct symmap *m, unsigned n)
{
	uint64_t *addr = malloc(n * sizeof(*addr)), total = 0, x = 88172645463325252u;
	const struct symmap_part *p;
	size_t parts = symmap_parts(m, &p);

	if (!addr)
		fail("no memory");
	for (size_t i = 0; i < parts; i++)
		total += p[i].hi - p[i].lo;
	if (!total)
		fail("no symbols");
	for (unsigned k = 0; k < n; k++) {
		uint64_t at;
		size_t i = 0;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		for (at = x % total; at >= p[i].hi - p[i].lo; i++)
			at -= p[i].hi - p[i].lo;
		addr[k] = p[i].lo + at;
	}
	return addr;
}

static double ns_a_lookup(const struct symmap *m, const uint64_t *addr, unsigned n, double *hits)
{
	int64_t start = cpu_ns(), took;
	uint64_t found = 0;
	struct symbol s;

	for (unsigned i = 0; i < n; i++)
		found += symmap_lookup(m, addr[i], &s);
	took = cpu_ns() - start;
	*hits = (double)found / n;
	return (double)took / n;
}

/* Without names and their ends, which are as long as they are. */
static double bytes_a_symbol(const struct symmap *m)
{
	const struct symmap_part *p;
	size_t parts = symmap_parts(m, &p), names = 0, n = 0;

	for (size_t i = 0; i < parts; i++) {
		struct symbol s;

		for (uint32_t k = 0; symtab_symbol(p[i].tab, k, &s); k++) {
			names += strlen(s.name) + 1;
			n++;
		}
	}
	return ((double)symmap_bytes(m) - (double)names) / (double)n;
}

int main(int argc, char **argv)
{
	double load_ms[LOADS], lookup[5], hits;
	struct symmap *m = NULL;
	uint64_t *addr;

	if (argc != 2)
		fail("usage: bench_symbols KALLSYMS");
	for (int i = 0; i < LOADS; i++) {
		int64_t start = cpu_ns();

		symmap_unref(m);
		m = load(argv[1]);
		load_ms[i] = (double)(cpu_ns() - start) / 1e6;
	}
	addr = make_addresses(m, LOOKUPS);
	for (int i = 0; i < 5; i++)
		lookup[i] = ns_a_lookup(m, addr, LOOKUPS, &hits);
	if (hits < 0.5)
		fail("addresses of the text are not found");
	printf("{\"what\": \"load\", \"unit\": \"ms\", \"ours\": [");
	for (int i = 1; i < LOADS; i++)
		printf("%s%.2f", i > 1 ? ", " : "", load_ms[i]);
	printf("]}\n{\"what\": \"symbols: a lookup at a random address\", \"unit\": \"ns\", "
	       "\"ours\": [");
	for (int i = 0; i < 5; i++)
		printf("%s%.2f", i ? ", " : "", lookup[i]);
	printf("], \"limit\": 100}\n{\"what\": \"symbols: memory a symbol beside its name\", "
	       "\"unit\": \"bytes\", \"ours\": [%.2f], \"limit\": 24}\n",
	       bytes_a_symbol(m));
	free(addr);
	symmap_unref(m);
	return 0;
}
