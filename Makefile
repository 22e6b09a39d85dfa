# SPDX-License-Identifier: GPL-2.0-only
# Builds kvmtop. `make help` lists the targets.
MAKEFLAGS += --no-builtin-rules
CC ?= gcc
ifeq ($(origin CC),default)
CC := gcc
endif
B ?= build
PKGS = ncursesw libtraceevent libelf libproc2 jansson expat
LIBPERF = $(abspath build)/libperf
LIBPERF_A = $(LIBPERF)/usr/lib/libperf.a

WARN = -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wwrite-strings
HARDEN = -fPIE -fstack-protector-strong -D_FORTIFY_SOURCE=2
OPT ?= -O2 -g
CFLAGS_ALL = -std=gnu17 -D_GNU_SOURCE $(OPT) $(WARN) $(HARDEN) -pthread -MMD -MP \
	-Isrc -Icollectors -Isymbols -Iui -isystem $(LIBPERF)/usr/include \
	$(shell pkg-config --cflags $(PKGS)) $(CFLAGS)
LDFLAGS_ALL = -pie -Wl,-z,relro,-z,now -pthread $(LDFLAGS)
LIBS = $(LIBPERF_A) $(LIBPERF)/libapi.a $(shell pkg-config --libs $(PKGS)) -lm

SRC = $(wildcard src/*.c collectors/*.c symbols/*.c ui/*.c)
OBJ = $(SRC:%.c=$(B)/obj/%.o)
LIBOBJ = $(filter-out $(B)/obj/src/main.o,$(OBJ))
UNIT = $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))

all: $(B)/kvmtop

$(B)/kvmtop: $(OBJ) | $(LIBPERF_A)
	$(CC) $(LDFLAGS_ALL) -o $@ $(OBJ) $(LIBS)

$(B)/obj/%.o: %.c | $(LIBPERF_A)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -c -o $@ $<

$(B)/libkvmtop.a: $(LIBOBJ)
	rm -f $@ && ar rcs $@ $(LIBOBJ)

$(B)/unit/%: tests/unit/%.c $(B)/libkvmtop.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -o $@ $< $(LDFLAGS_ALL) $(B)/libkvmtop.a $(LIBS) -lcmocka

# The tests' small VMM (its counts are the truth that kvmtop is held to).
guests: $(B)/guests/tinyvm-run
$(B)/guests/tinyvm-run: tests/guests/tinyvm-run.c src/tinyvm.c src/tinyvm_code.c | $(LIBPERF_A)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_ALL) -o $@ $^ $(LDFLAGS_ALL)

unit: $(UNIT)
check-unit: unit
	@set -e; for t in $(UNIT); do $$t; done

$(LIBPERF_A):
	sh scripts/libperf.sh $(LIBPERF)

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build

-include $(OBJ:.o=.d)
.PHONY: all guests unit check-unit format clean
