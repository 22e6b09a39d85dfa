// SPDX-License-Identifier: GPL-2.0-only
/* A running kernel's own lists, /proc/kallsyms and /proc/modules: the host's, or a guest's copies.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kallsyms.h"
#include "load.h"
#include "modules.h"
#include "sysroot.h"

void loaded_status(struct loaded *l, enum symbols_state state, const char *source, const char *mend,
		   const char *why, ...)
{
	struct symbols_status *s = &l->status;
	va_list ap;

	s->state = state;
	snprintf(s->source, sizeof(s->source), "%s", source);
	snprintf(s->mend, sizeof(s->mend), "%s", mend);
	va_start(ap, why);
	vsnprintf(s->why, sizeof(s->why), why, ap);
	va_end(ap);
}

/* What a kallsyms that gave no symbols was. */
static void refuse(struct loaded *out, int rc, const char *source, const char *restricted)
{
	if (rc == -EACCES)
		loaded_status(out, SYMBOLS_REFUSED, source, restricted,
			      "its addresses are zeros: kernel.kptr_restrict hid them from "
			      "whoever read it");
	else if (rc == -EBADMSG)
		loaded_status(out, SYMBOLS_REFUSED, source, "",
			      "this is no text of /proc/kallsyms");
	else
		loaded_status(out, SYMBOLS_REFUSED, source, "", "%s", bytes_error(rc));
}

void load_kernel_text(const struct load_context *c, const struct bytes *kallsyms,
		      const struct bytes *modules, const char *source, const char *restricted,
		      struct loaded *out, uint64_t *stext)
{
	struct symbuild *b = symbuild_new();
	struct kallsyms_facts ks = {0};
	struct modules_facts mods = {0};
	int rc = b ? kallsyms_parse(kallsyms->data, kallsyms->len, b, &ks) : -ENOMEM;

	/* Ranges are a help and no more: hidden or broken ones are left away. */
	if (!rc && modules_parse(modules->data, modules->len, b, &mods) == -ENOMEM)
		rc = -ENOMEM;
	*stext = ks.stext;
	if (rc)
		symbuild_free(b);
	else
		rc = symbuild_finish(b, c->tables, &out->map);
	if (rc)
		refuse(out, rc, source, restricted);
	else if (mods.modules && !ks.modules)
		loaded_status(out, SYMBOLS_PARTIAL, source, "",
			      "it has no symbols of its %zu modules: they are shown by module",
			      mods.modules);
	else
		loaded_status(out, SYMBOLS_OK, source, "", "%s", "");
}

static int read_proc(const struct sysroot *root, const char *path, struct bytes *out)
{
	int fd = sysroot_openat(root, path, O_RDONLY), rc;

	*out = (struct bytes){0};
	if (fd < 0)
		return fd;
	rc = bytes_read(fd, BYTES_TEXT_MAX, out);
	close(fd);
	return rc;
}

void load_host(const struct load_context *c, struct loaded *out)
{
	struct bytes kallsyms, modules;
	uint64_t stext;
	int rc = read_proc(c->root, "proc/kallsyms", &kallsyms);

	*out = (struct loaded){0};
	if (rc == -ENOENT)
		loaded_status(out, SYMBOLS_NONE, "/proc/kallsyms", "",
			      "this kernel has no /proc/kallsyms (CONFIG_KALLSYMS is off)");
	else if (rc)
		loaded_status(out, SYMBOLS_NONE, "/proc/kallsyms", "sudo kvmtop", "%s",
			      strerror(-rc));
	if (rc)
		return;
	read_proc(c->root, "proc/modules", &modules); /* none: no modules */
	load_kernel_text(
		c, &kallsyms, &modules, "/proc/kallsyms",
		"sudo kvmtop, or give it CAP_SYSLOG; as root: sysctl kernel.kptr_restrict=1", out,
		&stext);
	bytes_free(&kallsyms);
	bytes_free(&modules);
}
