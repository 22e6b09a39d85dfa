// SPDX-License-Identifier: GPL-2.0-only
/*
 * Title, nova name and pins out of libvirt's live XML, with expat.
 *
 * The file is root's, but the texts in it are a tenant's; so it is read bounded, as a plain
 * file, and without a document type.
 */
#include <errno.h>
#include <expat.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "procfs.h"
#include "sysroot.h"
#include "vms_libvirt.h"

#define MAX_XML (4u << 20)
#define MAX_DEPTH 32
#define MAX_VCPU 4096

/* Which element's text is being taken. */
struct parse {
	XML_Parser xp;
	struct libvirt_domain *d;
	int depth;
	int domain_depth; /* of <domain>, 0 outside */
	char *text; /* where character data goes, NULL nowhere */
	size_t room, len;
	int text_depth;
	bool in_cputune, in_vcpus, root_seen;
	int err;
};

static const char *attr(const XML_Char **a, const char *name)
{
	for (; a[0]; a += 2)
		if (!strcmp(a[0], name))
			return a[1];
	return NULL;
}

static struct libvirt_vcpu *vcpu_of(struct parse *p, const char *number)
{
	struct libvirt_domain *d = p->d;
	struct libvirt_vcpu *v;
	int index;

	if (!number || procfs_parse_id(number, &index) || index >= MAX_VCPU)
		return NULL;
	for (size_t i = 0; i < d->nvcpu; i++)
		if (d->vcpu[i].index == index)
			return &d->vcpu[i];
	v = realloc(d->vcpu, (d->nvcpu + 1) * sizeof(*v));
	if (!v) {
		p->err = -ENOMEM;
		XML_StopParser(p->xp, XML_FALSE);
		return NULL;
	}
	d->vcpu = v;
	v = &d->vcpu[d->nvcpu++];
	memset(v, 0, sizeof(*v));
	v->index = index;
	return v;
}

static void take_text(struct parse *p, char *to, size_t size)
{
	if (*to)
		return; /* the first one counts: <name> stands in other elements too */
	p->text = to;
	p->room = size;
	p->len = 0;
	p->text_depth = p->depth;
}

static void on_pin(struct parse *p, const XML_Char **a)
{
	const char *cpuset = attr(a, "cpuset");
	struct libvirt_vcpu *v = vcpu_of(p, attr(a, "vcpu"));

	if (v && cpuset && strlen(cpuset) < sizeof(v->pin))
		memcpy(v->pin, cpuset, strlen(cpuset) + 1);
}

static void on_vcpu_pid(struct parse *p, const XML_Char **a)
{
	const char *pid = attr(a, "pid");
	struct libvirt_vcpu *v = vcpu_of(p, attr(a, "id"));
	int tid;

	if (v && pid && !procfs_parse_id(pid, &tid))
		v->tid = tid;
}

static void on_status(struct parse *p, const XML_Char **a)
{
	const char *pid = attr(a, "pid");
	int v;

	if (pid && !procfs_parse_id(pid, &v))
		p->d->pid = v;
}

/* Children of <domain>, and the few deeper ones that are wanted. */
static void on_domain_child(struct parse *p, const char *el, const XML_Char **a)
{
	struct libvirt_domain *d = p->d;
	int level = p->depth - p->domain_depth;

	if (level == 1 && !strcmp(el, "name"))
		take_text(p, d->name, sizeof(d->name));
	else if (level == 1 && !strcmp(el, "uuid"))
		take_text(p, d->uuid, sizeof(d->uuid));
	else if (level == 1 && !strcmp(el, "title"))
		take_text(p, d->title, sizeof(d->title));
	else if (level == 1 && !strcmp(el, "cputune"))
		p->in_cputune = true;
	else if (level == 2 && p->in_cputune && !strcmp(el, "vcpupin"))
		on_pin(p, a);
	else if (level == 3 && !strcmp(el, "nova:name"))
		take_text(p, d->nova, sizeof(d->nova));
}

static void on_start(void *ctx, const XML_Char *el, const XML_Char **a)
{
	struct parse *p = ctx;

	if (++p->depth > MAX_DEPTH) {
		p->err = -EBADMSG;
		XML_StopParser(p->xp, XML_FALSE);
		return;
	}
	if (p->depth == 1) {
		p->root_seen = !strcmp(el, "domstatus") || !strcmp(el, "domain");
		if (!strcmp(el, "domstatus"))
			on_status(p, a);
	}
	if (p->depth <= 2 && !strcmp(el, "domain"))
		p->domain_depth = p->depth;
	else if (p->depth == 2 && !strcmp(el, "vcpus"))
		p->in_vcpus = true;
	else if (p->depth == 3 && p->in_vcpus && !strcmp(el, "vcpu"))
		on_vcpu_pid(p, a);
	else if (p->domain_depth)
		on_domain_child(p, el, a);
}

static void on_end(void *ctx, const XML_Char *el)
{
	struct parse *p = ctx;

	(void)el;
	if (p->text && p->depth == p->text_depth) {
		p->text[p->len] = '\0';
		p->text = NULL;
	}
	if (p->depth == p->domain_depth + 1)
		p->in_cputune = false;
	if (p->depth == 2)
		p->in_vcpus = false;
	if (p->depth == p->domain_depth)
		p->domain_depth = 0;
	p->depth--;
}

static void on_text(void *ctx, const XML_Char *s, int len)
{
	struct parse *p = ctx;
	size_t n = (size_t)len;

	if (!p->text || p->depth != p->text_depth)
		return;
	if (n > p->room - 1 - p->len)
		n = p->room - 1 - p->len;
	memcpy(p->text + p->len, s, n);
	p->len += n;
	p->text[p->len] = '\0';
}

static void on_doctype(void *ctx, const XML_Char *name, const XML_Char *sysid,
		       const XML_Char *pubid, int internal)
{
	struct parse *p = ctx;

	(void)name;
	(void)sysid;
	(void)pubid;
	(void)internal;
	p->err = -EBADMSG;
	XML_StopParser(p->xp, XML_FALSE);
}

int libvirt_parse(const char *xml, size_t len, struct libvirt_domain *out)
{
	struct parse p = {.d = out};

	memset(out, 0, sizeof(*out));
	if (len > MAX_XML)
		return -EFBIG;
	p.xp = XML_ParserCreate(NULL);
	if (!p.xp)
		return -ENOMEM;
	XML_SetUserData(p.xp, &p);
	XML_SetElementHandler(p.xp, on_start, on_end);
	XML_SetCharacterDataHandler(p.xp, on_text);
	XML_SetStartDoctypeDeclHandler(p.xp, on_doctype);
	if (XML_Parse(p.xp, xml, (int)len, 1) != XML_STATUS_OK && !p.err)
		p.err = -EBADMSG;
	if (!p.err && !p.root_seen)
		p.err = -EBADMSG;
	XML_ParserFree(p.xp);
	if (p.err)
		libvirt_free(out);
	return p.err;
}

void libvirt_free(struct libvirt_domain *d)
{
	free(d->vcpu);
	d->vcpu = NULL;
	d->nvcpu = 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* The domain's name comes from the VMM's command line: it must stay one file name. */
static bool safe_name(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/') && strlen(name) < 240;
}

static int read_domain(int fd, size_t size, struct libvirt_domain *out)
{
	char *buf = malloc(size + 2);
	ssize_t n;
	int err;

	if (!buf)
		return -ENOMEM;
	n = fd_read_all(fd, buf, size + 2);
	err = n < 0 ? (int)n : libvirt_parse(buf, (size_t)n, out);
	free(buf);
	return err;
}

int libvirt_read(const struct sysroot *root, const char *name, struct stat *seen,
		 struct libvirt_domain *out)
{
	char path[300];
	struct stat st;
	int fd, err;

	if (!safe_name(name))
		return -EINVAL;
	snprintf(path, sizeof(path), "run/libvirt/qemu/%s.xml", name);
	fd = sysroot_openat(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode) || (st.st_uid && sysroot_is_live(root)))
		err = -EPERM;
	else if (same_file(&st, seen))
		err = -EALREADY;
	else if (st.st_size < 0 || st.st_size > (off_t)MAX_XML)
		err = -EFBIG;
	else
		err = read_domain(fd, (size_t)st.st_size, out);
	if (!err || err == -EBADMSG || err == -EFBIG)
		*seen = st; /* also a broken one is not parsed again before it changes */
	close(fd);
	return err;
}
