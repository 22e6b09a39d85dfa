// SPDX-License-Identifier: GPL-2.0-only
/* The folder of one guest's symbols (guest_dir.h). */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest_dir.h"
#include "text.h"

static bool user_of(uid_t uid, struct guest_home *out)
{
	char buf[4096];
	struct passwd pw, *found = NULL;

	if (getpwuid_r(uid, &pw, buf, sizeof(buf), &found) != 0 || !found || pw.pw_dir[0] != '/')
		return false;
	out->uid = pw.pw_uid;
	out->gid = pw.pw_gid;
	return snprintf(out->path, sizeof(out->path), "%s/.config", pw.pw_dir) <
	       (int)sizeof(out->path);
}

/* Who called sudo; false: nobody did. */
static bool sudo_user(uid_t *uid)
{
	const char *text = getenv("SUDO_UID");
	char *end;
	long v;

	if (geteuid() != 0 || !text || !*text)
		return false;
	errno = 0;
	v = strtol(text, &end, 10);
	*uid = (uid_t)v;
	return !errno && !*end && v > 0 && v < UINT32_MAX;
}

int guest_home_find(struct guest_home *out)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n = -1;
	uid_t uid;

	*out = (struct guest_home){.uid = geteuid(), .gid = getegid()};
	if (sudo_user(&uid)) {
		out->sudo = true;
		return user_of(uid, out) ? 0 : -ENOENT;
	}
	if (xdg && xdg[0] == '/')
		n = snprintf(out->path, sizeof(out->path), "%s", xdg);
	else if (home && home[0] == '/')
		n = snprintf(out->path, sizeof(out->path), "%s/.config", home);
	else
		return user_of(out->uid, out) ? 0 : -ENOENT;
	return n < (int)sizeof(out->path) ? 0 : -ENAMETOOLONG;
}

int guest_dir_encode(const char *name, char *out, size_t size)
{
	size_t n = text_path_part(out, size, name);

	if (!n)
		return -EINVAL;
	return n > NAME_MAX || n >= size ? -ENAMETOOLONG : 0;
}

void guest_dir_path(const struct guest_home *home, const char *name, char *out, size_t size)
{
	char part[NAME_MAX + 1];

	if (guest_dir_encode(name, part, sizeof(part)) < 0 ||
	    snprintf(out, size, "%s/kvmtop/guests/%s", home->path, part) >= (int)size)
		out[0] = '\0';
}

/* One folder down; the descriptor above is closed. */
static int down(int dir, const char *part, bool make)
{
	int fd, err;

	if (make && mkdirat(dir, part, 0700) < 0 && errno != EEXIST) {
		err = errno;
		close(dir);
		return -err;
	}
	fd = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	err = errno;
	close(dir);
	return fd < 0 ? -err : fd;
}

/* Whoever may write there chooses names; that is not for everybody. */
static int owned(int dir, const struct guest_home *home)
{
	struct stat st;

	if (dir < 0)
		return dir;
	if (fstat(dir, &st) == 0 &&
	    (st.st_uid == 0 || st.st_uid == geteuid() || st.st_uid == home->uid) &&
	    !(st.st_mode & S_IWOTH))
		return dir;
	close(dir);
	return -EPERM;
}

/* The folder and those above it, as XDG has it; 0 or -errno. */
static int make_home(const char *path)
{
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *p = strchr(part + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return mkdir(part, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int open_dir(const struct guest_home *home, const char *name, bool make)
{
	char part[NAME_MAX + 1];
	int rc = guest_dir_encode(name, part, sizeof(part)), dir;

	if (rc)
		return rc;
	rc = make ? make_home(home->path) : 0;
	if (rc)
		return rc;
	dir = open(home->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	dir = down(dir, "kvmtop", make);
	if (dir >= 0)
		dir = down(dir, "guests", make);
	if (dir >= 0)
		dir = down(dir, part, make);
	return owned(dir, home);
}

int guest_dir_open(const struct guest_home *home, const char *name)
{
	return open_dir(home, name, false);
}

int guest_dir_make(const struct guest_home *home, const char *name)
{
	return open_dir(home, name, true);
}

const char *guest_dir_error(int rc)
{
	switch (rc) {
	case -EPERM:
		return "it is another user's, or everybody may write there";
	case -ENOTDIR:
		return "no folder (symbolic links are not followed here)";
	default:
		return strerror(-rc);
	}
}
