// SPDX-License-Identifier: GPL-2.0-only
/* A folder for guests' symbols, and short ways to fill it and to load from it. For symbols' tests.
 */
#ifndef KVMTOP_TESTS_GUEST_ENV_H
#define KVMTOP_TESTS_GUEST_ENV_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "load.h"
#include "made_tree.h"
#include "sysroot.h"

#define DATA "tests/data/symbols/"

struct env {
	char dir[64]; /* XDG_CONFIG_HOME, and whatever else a test makes */
	struct sysroot *root;
	struct load_context c;
	struct guest_files files;
	struct guest_file_option option[4];
};

static inline int setup(void **state)
{
	struct env *e = calloc(1, sizeof(*e));

	snprintf(e->dir, sizeof(e->dir), "/tmp/kvmtop-guest-XXXXXX");
	assert_non_null(mkdtemp(e->dir));
	setenv("XDG_CONFIG_HOME", e->dir, 1);
	unsetenv("SUDO_UID");
	assert_int_equal(sysroot_open(NULL, &e->root), 0);
	e->files.option = e->option;
	e->c = (struct load_context){.root = e->root,
				     .files = &e->files,
				     .tables = symcache_new(),
				     .maps = map_cache_new()};
	*state = e;
	return 0;
}

static inline int teardown(void **state)
{
	struct env *e = *state;

	tree_remove(e->dir);
	map_cache_free(e->c.maps);
	symcache_free(e->c.tables);
	sysroot_close(e->root);
	free(e);
	return 0;
}

static inline const char *path_in(const struct env *e, const char *name)
{
	static char path[2][512];
	static int turn;

	turn = !turn;
	snprintf(path[turn], sizeof(path[0]), "%s/%s", e->dir, name);
	return path[turn];
}

static inline void put(const struct env *e, const char *name, const char *text)
{
	char path[512], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", e->dir, name);
	for (slash = strchr(path + strlen(e->dir) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static inline void copy(const struct env *e, const char *from, const char *name)
{
	char *text = calloc(1, 1 << 20);
	FILE *f = fopen(from, "r");

	assert_non_null(f);
	assert_in_range(fread(text, 1, (1 << 20) - 1, f), 1, (1 << 20) - 2);
	fclose(f);
	put(e, name, text);
	free(text);
}

static inline void give(struct env *e, enum guest_file what, const char *vm, const char *file)
{
	e->option[e->files.n++] =
		(struct guest_file_option){.what = what, .vm = vm, .file = strdup(file)};
}

static inline void take_back(struct env *e)
{
	while (e->files.n)
		free((char *)e->option[--e->files.n].file);
}

static const struct guest_vm web01 = {.name = "web01", .uuid = "8f3c-4"};

static inline struct loaded load_with(struct env *e, const struct guest_vm *vm,
				      const struct symbols_evidence *evidence, size_t n)
{
	struct guest_vm here = *vm;
	struct loaded l;

	here.pid = getpid();
	load_guest(&e->c, &here, evidence, n, &l);
	return l;
}

static inline struct loaded load(struct env *e, const struct guest_vm *vm)
{
	return load_with(e, vm, NULL, 0);
}

/* The name at an address, "" for none; the map is given back. */
static inline const char *name_at(struct loaded l, uint64_t addr)
{
	static char buf[128];
	struct symbol s;

	buf[0] = '\0';
	if (l.map && symmap_lookup(l.map, addr, &s))
		snprintf(buf, sizeof(buf), "%s", s.name);
	symmap_unref(l.map);
	return buf;
}

static inline void check_state(struct loaded l, enum symbols_state state, const char *why)
{
	if (l.status.state != state || !strstr(l.status.why, why))
		print_error("state %d: %s\n", l.status.state, l.status.why);
	assert_int_equal(l.status.state, state);
	assert_non_null(strstr(l.status.why, why));
	assert_int_equal(l.map != NULL, state <= SYMBOLS_PARTIAL);
	symmap_unref(l.map);
}

#endif
