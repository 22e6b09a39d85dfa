// SPDX-License-Identifier: GPL-2.0-only
/* The screen and the settings into files: never over what is there, never readable by others. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "settings.h"
#include "stream.h"
#include "ui_priv.h"

/* The screen as it is, without the prompt that asked for the name. */
static struct surface *picture(struct ui *ui)
{
	struct surface *s = surface_new(ui->rows, ui->cols);
	enum ui_prompt ask = ui->ask;

	if (!s)
		return NULL;
	ui->ask = ASK_NOTHING;
	ui_draw(ui, s);
	ui->ask = ask;
	return s;
}

int ui_save_screen(struct ui *ui, const char *path)
{
	struct surface *s = picture(ui);
	FILE *f;
	int fd, r = 0;

	if (!s)
		return -ENOMEM;
	/* O_EXCL neither overwrites nor follows a link that somebody put there. */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		r = -errno;
		surface_free(s);
		return r;
	}
	f = fdopen(fd, "w");
	if (f) {
		errno = 0;
		surface_dump(s, f);
		r = stream_close(f);
	} else {
		r = -errno;
		close(fd);
	}
	/* Half a screen, as on a full disk, is of no use, and would stand in the next try's way. */
	if (r)
		unlink(path);
	surface_free(s);
	return r;
}

static const char *ground_word(const struct ui *ui)
{
	return ui->cfg.theme_word ? ui->cfg.theme_word : "";
}

int ui_settings_write(struct ui *ui, char *why, size_t size)
{
	int r;

	if (!ui->settings) {
		snprintf(why, size, "no settings file: neither XDG_CONFIG_HOME nor HOME is set");
		return -ENOENT;
	}
	r = settings_write(ui->settings, &ui->view, ground_word(ui));
	if (r == -EPERM)
		snprintf(why, size, "not written: the folder of %s is another user's",
			 ui->settings);
	else if (r < 0)
		snprintf(why, size, "%s: %s", ui->settings, strerror(-r));
	else
		snprintf(why, size, "settings written to %s", ui->settings);
	return r;
}
