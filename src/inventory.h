// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who is there now: VMs, vCPUs and their threads.
 *
 * The collector `vms` fills it, `sched` reads what it must measure from it, the
 * model hangs its own state on it (cookies). Only the collecting thread touches
 * it. Identity as docs/metrics.md, "Who": VM = (pid, start time, key), vCPU = (VM,
 * KVM's id); thread → vCPU is a current relation that may change.
 */
#ifndef KVMTOP_INVENTORY_H
#define KVMTOP_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum inv_cookie {
	INV_COOKIE_MODEL,
	INV_COOKIE_SCHED,
	INV_COOKIE_VMS,
	INV_COOKIE_SYMBOLS,
	INV_COOKIE_WAITS,
	INV_COOKIE_TSC, /* of vCPUs: a number, nothing to free */
	INV_COOKIE_NR
};

enum inv_flag {
	INV_GUESSED = 1, /* found without the rights to be sure */
	INV_PROVISIONAL = 2, /* made from an event of an unknown thread */
	INV_GONE = 4, /* ended; kept for the interval in flight */
	INV_LAST = 8, /* gone for one sweep: kept for events from before its end that come late */
};

enum inv_role {
	ROLE_VCPU,
	ROLE_VMM, /* another thread of the VMM's process */
	ROLE_HELPER, /* a kernel thread that works for the VM (vhost-<pid>, …) */
};

struct inv_vm;

struct inv_thread {
	pid_t tid, pid;
	uint64_t start; /* stat field 22, clock ticks since boot */
	struct inv_vm *vm;
	char comm[16];
	uint8_t role; /* enum inv_role */
	uint8_t flags; /* enum inv_flag */
	bool asked; /* it stands in the list of inventory_take_unknown() */
	uint16_t nvcpus; /* how many vCPUs run on it now */
	struct inv_vcpu *vcpu; /* the one seen last, NULL unless ROLE_VCPU */
	struct inv_thread *next; /* in vm->threads */
	void *cookie[INV_COOKIE_NR];
};

struct inv_vcpu {
	uint32_t id; /* never reused */
	struct inv_vm *vm;
	int kvm_id; /* KVM's id; on x86 the APIC id, with gaps */
	int index; /* the VMM's number, as shown */
	bool index_guessed; /* by rank of kvm_id, not from the thread's name */
	bool ranked; /* it got its number by rank, and keeps it when others are unplugged */
	uint8_t flags;
	struct inv_thread *thread; /* NULL: not known now */
	char *xml_pin; /* cpuset that libvirt asks for, NULL none */
	void *cookie[INV_COOKIE_NR];
};

struct inv_vm {
	uint32_t id; /* never reused, from 1 */
	pid_t pid;
	uint64_t start; /* of the process, clock ticks since boot */
	unsigned nth; /* which VM of its process, from 0, in the order found */
	char key[40]; /* debugfs folder "4711-9" or "fd:9"; "" while provisional */
	uint8_t flags;
	bool shown; /* the model's: it has a row in the snapshot that is being made */
	char vmm[16]; /* qemu, firecracker, cloud-hypervisor, crosvm, kvmtool, …, or comm */
	char *name; /* never NULL; as found, unescaped, UTF-8 not assured */
	char *uuid, *title, *nova, *cmdline, *cgroup; /* NULL where there is none */
	struct inv_vcpu **vcpu; /* sorted by kvm_id */
	size_t nvcpu;
	struct inv_thread *threads; /* all, vCPU threads too */
	size_t nthread;
	struct inv_vm *next; /* in inventory order: as found */
	void *cookie[INV_COOKIE_NR];
};

struct inventory;

/* Called before an object is freed, so that its cookie can be. */
struct inv_observer {
	void *ctx;
	void (*thread_free)(void *ctx, struct inv_thread *t);
	void (*vcpu_free)(void *ctx, struct inv_vcpu *v);
	void (*vm_free)(void *ctx, struct inv_vm *vm);
};

struct inventory *inventory_new(void); /* NULL: no memory */
void inventory_free(struct inventory *inv);
int inventory_observe(struct inventory *inv, const struct inv_observer *o); /* copied */
/* Forgets the observers with this ctx: one that is freed before the inventory. */
void inventory_unobserve(struct inventory *inv, const void *ctx);

struct inv_vm *inventory_first(struct inventory *inv); /* then ->next */
size_t inventory_nvm(const struct inventory *inv);
size_t inventory_nvcpu(const struct inventory *inv);
struct inv_vm *inventory_vm(struct inventory *inv, uint32_t id); /* NULL: none */
struct inv_vm *inventory_find(struct inventory *inv, pid_t pid, uint64_t start, const char *key);
/* Named "pid:<pid>" until a better name is found. Returns the existing, living one of that
 * identity. */
struct inv_vm *inventory_add_vm(struct inventory *inv, pid_t pid, uint64_t start, const char *key);
struct inv_vcpu *inventory_add_vcpu(struct inventory *inv, struct inv_vm *vm, int kvm_id);
/* A dead thread of the same tid (another start) is marked gone first. */
struct inv_thread *inventory_add_thread(struct inventory *inv, struct inv_vm *vm, pid_t pid,
					pid_t tid, uint64_t start, enum inv_role role);
struct inv_thread *inventory_thread(const struct inventory *inv, pid_t tid); /* live ones */
/* One that is gone and not swept; where the tid was reused meanwhile, the later one. */
struct inv_thread *inventory_ended_thread(const struct inventory *inv, pid_t tid);
struct inv_vcpu *inventory_vcpu(const struct inv_vm *vm, int kvm_id);
/* The vCPU runs on this thread from now on. */
void inventory_set_thread(struct inventory *inv, struct inv_vcpu *v, struct inv_thread *t);
/* Sets a string member (&vm->name …) to a copy. */
int inventory_set(char **member, const char *text);

/*
 * An event came from a thread that is not known: makes a provisional VM
 * "tid:<tid>" with one thread and puts the tid on the list that `vms` works off. pid: its
 * process, 0 where the event does not say it.
 */
struct inv_thread *inventory_provisional(struct inventory *inv, pid_t tid, pid_t pid);
/*
 * The provisional VM's thread ended before it was found out what it is: it is gone. Its events are
 * those of its process's VM, else of one "pid:<pid>" for all such threads of a process, or
 * "<comm>:<pid>" where the process was seen; else pid is 0.
 */
void inventory_provisional_gone(struct inventory *inv, struct inv_vm *vm, const char *comm,
				pid_t pid);
/*
 * An event came from a known thread that runs no vCPU as far as is known: asks whoever said
 * inventory_on_ask() at once, so that the event finds its vCPU and VM. Nothing is freed in it.
 */
void inventory_ask(struct inventory *inv, struct inv_thread *t);
void inventory_on_ask(struct inventory *inv, void (*ask)(void *ctx, struct inv_thread *t),
		      void *ctx);
/*
 * A known thread that runs no vCPU as far as is known used guest time: it goes on the same list.
 */
void inventory_unsure(struct inventory *inv, struct inv_thread *t);
/* Takes one tid off that list; 0: empty. */
pid_t inventory_take_unknown(struct inventory *inv);
/* Thread t moves to another VM (a provisional one was identified); cookies stay with it. */
void inventory_move_thread(struct inventory *inv, struct inv_thread *t, struct inv_vm *to);

/*
 * A provisional VM turned out to be this one. Returns the VM of that identity: `vm` itself
 * with its id and cookies, or the one that was there already, which gets vm's threads
 * (vm is gone then). NULL: no memory, nothing changed.
 */
struct inv_vm *inventory_identify(struct inventory *inv, struct inv_vm *vm, pid_t pid,
				  uint64_t start, const char *key);

/* Mark; they are freed by inventory_sweep() after the snapshot that shows their last interval. */
void inventory_vm_gone(struct inventory *inv, struct inv_vm *vm);
void inventory_vcpu_gone(struct inventory *inv, struct inv_vcpu *v);
void inventory_thread_gone(struct inventory *inv, struct inv_thread *t);
void inventory_sweep(struct inventory *inv);
/*
 * The same for what was gone at the call before; the rest of it is marked INV_LAST. A thread's
 * last events are read after its end was seen (the watermark lies behind).
 */
void inventory_sweep_old(struct inventory *inv);
/* Changes whenever anything was added, removed, moved or renamed. */
uint64_t inventory_generation(const struct inventory *inv);
void inventory_touch(struct inventory *inv);

#endif
