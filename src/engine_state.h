// SPDX-License-Identifier: GPL-2.0-only
/* The engine's insides, between engine.c (making, orders) and engine_loop.c (the thread). */
#ifndef KVMTOP_ENGINE_STATE_H
#define KVMTOP_ENGINE_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine.h"
#include "engine_symbols.h"
#include "governor.h"

#define MAX_COLLECTORS 16
#define MAX_READERS 8

struct active {
	const struct collector *c;
	void *state;
	bool open;
};

struct engine {
	struct engine_config config;
	struct collector_env env;
	char *root_dir, *names_wanted;
	char node[65], kernel[65], boot_id[40];
	struct model *model;
	struct sink sink; /* the model's, but that samples come by way of `symbols` */
	struct engine_symbols *symbols;
	struct active active[MAX_COLLECTORS];
	size_t nactive;
	struct reader *reader[MAX_READERS];
	size_t nreader;
	int epfd, timerfd, ctlfd;
	pthread_t thread;
	bool started;
	atomic_bool stop, reset, tick_now;
	pthread_mutex_t lock; /* guards delay_wanted */
	double delay_wanted;
	/* Below: the collecting thread's own. */
	int64_t deadline, watermark;
	unsigned long ticks;
	unsigned ncpu; /* of our machine, by the last snapshot; 0: it does not say */
	unsigned refused; /* ticks in a row without memory for a snapshot */
	struct demand demand;
	struct governor governor;
	bool no_entry_exit; /* this KVM fires neither, as far as is known */
	unsigned others_idle; /* intervals in a row in which all that is no VM took next to nothing
			       */
	bool exit_where; /* some guest's symbols are held against its exits */
	bool exit_places; /* a guest's symbols wait for places where it exits */
	unsigned starved; /* ticks for which pins are read because of steal */
	void *vms; /* state of the collector vms, NULL where it is not open */
};

/* The thread's function; arg is the struct engine. */
void *engine_collect(void *arg);
/* Watches a descriptor; `what` comes back with its events. 0 or -errno. */
int engine_watch(struct engine *e, int fd, void *what);

#endif
