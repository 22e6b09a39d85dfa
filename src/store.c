// SPDX-License-Identifier: GPL-2.0-only
/* Opening and closing of recordings, and how SQLite is spoken to (store.h). */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store_priv.h"
#include "store_schema.h"
#include "text.h"

/* A reader of a file that somebody made on purpose shall not compute for ever. */
#define STEPS_A_CHECK 1000000
#define STEPS_MOST 200
/* How long one waits for the other's checkpoint. */
#define BUSY_MS 2000

#define PAGE 4096

#define APPLICATION "PRAGMA application_id"

int store_errno(struct store *st)
{
	int code = sqlite3_errcode(st->db) & 0xff;

	/* Files beside the recording that do not fit have no code of their own. */
	if ((code == SQLITE_IOERR || code == SQLITE_CANTOPEN) &&
	    (sqlite3_system_errno(st->db) == ENOSPC || sqlite3_system_errno(st->db) == EDQUOT))
		return -ENOSPC;
	switch (code) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return -EACCES;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR:
	case SQLITE_CONSTRAINT: /* rows that we did not write are in the way */
	case SQLITE_MISMATCH:
		return -EBADMSG;
	case SQLITE_CANTOPEN:
		return -ENOENT;
	case SQLITE_INTERRUPT:
		return -EINTR;
	default:
		return -EIO;
	}
}

sqlite3_stmt *store_stmt(struct store *st, enum store_statement which)
{
	if (!st->stmt[which] &&
	    sqlite3_prepare_v3(st->db, store_sql[which], -1, SQLITE_PREPARE_PERSISTENT,
			       &st->stmt[which], NULL) != SQLITE_OK)
		return NULL;
	return st->stmt[which];
}

int store_run(struct store *st, enum store_statement which)
{
	sqlite3_stmt *s = store_stmt(st, which);
	int rc;

	if (!s)
		return store_errno(st);
	do {
		rc = sqlite3_step(s);
	} while (rc == SQLITE_ROW);
	rc = rc == SQLITE_DONE ? 0 : store_errno(st);
	sqlite3_reset(s);
	return rc;
}

int store_run_with(struct store *st, enum store_statement which, int64_t v)
{
	sqlite3_stmt *s = store_stmt(st, which);

	if (!s)
		return store_errno(st);
	sqlite3_bind_int64(s, 1, v);
	return store_run(st, which);
}

int store_exec(struct store *st, const char *sql)
{
	return sqlite3_exec(st->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_errno(st);
}

/* The one number that a statement gives. 0 or -errno. */
static int number_of(struct store *st, const char *sql, int64_t *out)
{
	sqlite3_stmt *s;
	int rc = 0;

	if (sqlite3_prepare_v2(st->db, sql, -1, &s, NULL) != SQLITE_OK)
		return store_errno(st);
	if (sqlite3_step(s) == SQLITE_ROW)
		*out = sqlite3_column_int64(s, 0);
	else
		rc = store_errno(st);
	sqlite3_finalize(s);
	return rc;
}

int64_t store_pragma(struct store *st, const char *name)
{
	int64_t v = -1; /* a pragma that gives no row at all is not known either */
	char sql[64];

	snprintf(sql, sizeof(sql), "PRAGMA %s", name);
	return number_of(st, sql, &v) ? -1 : v;
}

int64_t store_bytes(struct store *st)
{
	int64_t pages = store_pragma(st, "page_count"), size = store_pragma(st, "page_size");

	return pages > 0 && size > 0 ? pages * size : 0;
}

__attribute__((format(printf, 5, 6))) static int fail(int rc, char *err, size_t size,
						      const char *path, const char *fmt, ...)
{
	char safe[200], what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	text_escape(safe, sizeof(safe), path);
	snprintf(err, size, "%s: %s", safe, what);
	return rc;
}

/* The tables are tables: a view of the same name could compute whatever its maker liked. */
static bool schema_ok(struct store *st)
{
	sqlite3_stmt *s;
	bool ok = false;

	if (sqlite3_prepare_v2(st->db, store_schema_check, -1, &s, NULL) != SQLITE_OK)
		return false;
	if (sqlite3_step(s) == SQLITE_ROW)
		ok = sqlite3_column_int(s, 0) ==
		     STORE_TABLE_COUNT -
			     (st->version < STORE_VERSION_FACTS ? STORE_TABLES_OF_2 : 0) -
			     (st->version < STORE_VERSION_WAITED ? STORE_TABLES_OF_3 : 0);
	sqlite3_finalize(s);
	return ok;
}

/*
 * On file systems of a network both kinds of locks are one, so that ours keeps SQLite's out: then
 * without ours the file can be read. (Nor has such a one a log in memory that two hosts share.)
 */
static bool kept_out_by_ours(struct store *st)
{
	int64_t v;

	return st->lock >= 0 && !flock(st->lock, LOCK_UN) &&
	       number_of(st, APPLICATION, &v) != -EBUSY;
}

/* A file that could not be looked at or prepared, in words of what stands in the way. */
static int fail_sqlite(struct store *st, int rc, char *err, size_t size, const char *path)
{
	const char *why = sqlite3_errmsg(st->db);
	int code = sqlite3_errcode(st->db) & 0xff;

	if (rc == -ENOSPC)
		why = "no room left on its file system";
	else if (rc == -EBUSY)
		why = kept_out_by_ours(st)
			      ? "its file system is a network's, which has not the locks "
				"for it: record into a local folder"
			      : "another program has it locked";
	else if (code == SQLITE_NOTADB)
		why = "not a recording of kvmtop: it is no database";
	else if (code == SQLITE_CANTOPEN || code == SQLITE_READONLY)
		why = "its log beside it cannot be used: that needs the right to write in its "
		      "folder";
	return fail(rc, err, size, path, "%s", why);
}

/* 1: an empty database, 0: a recording that we can use, -errno: neither. */
static int look(struct store *st, const char *path, char *err, size_t size)
{
	int64_t application = 0, version = 0, made = 0;
	int rc = number_of(st, APPLICATION, &application);

	if (!rc)
		rc = number_of(st, "PRAGMA user_version", &version);
	if (!rc && application == 0)
		rc = number_of(st, "SELECT count(*) FROM sqlite_schema", &made);
	if (rc)
		return fail_sqlite(st, rc, err, size, path);
	/*
	 * Also where it has a page already: whatever ended the first start between that page and
	 * our tables.
	 */
	if (application == 0 && !made)
		return 1;
	if (application != STORE_APPLICATION)
		return fail(-EBADMSG, err, size, path, "not a recording of kvmtop");
	st->version = version;
	if (version < 1 || version > STORE_VERSION)
		return fail(-EBADMSG, err, size, path,
			    "a recording of version %lld: this kvmtop knows those up to %d",
			    (long long)version, STORE_VERSION);
	if (!schema_ok(st))
		return fail(-EBADMSG, err, size, path, "a damaged recording: tables are missing");
	return 0;
}

static int on_progress(void *ctx)
{
	return ++((struct store *)ctx)->steps > STEPS_MOST;
}

static void make_safe(struct store *st)
{
	sqlite3_busy_timeout(st->db, BUSY_MS);
	sqlite3_extended_result_codes(st->db, 1);
	sqlite3_db_config(st->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(st->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(st->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(st->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_exec(st->db, "PRAGMA cell_size_check=ON", NULL, NULL, NULL);
	sqlite3_progress_handler(st->db, STEPS_A_CHECK, on_progress, st);
	sqlite3_limit(st->db, SQLITE_LIMIT_LENGTH, (int)STORE_UNPACKED_MOST);
}

bool store_is_moved(const struct store *st)
{
	struct stat there, ours;

	if (st->lock < 0 || fstat(st->lock, &ours))
		return false;
	if (stat(st->path, &there))
		return errno == ENOENT || errno == ENOTDIR;
	return there.st_ino != ours.st_ino || there.st_dev != ours.st_dev;
}

void store_close(struct store *st)
{
	if (!st)
		return;
	for (int i = 0; i < ST_NR; i++)
		sqlite3_finalize(st->stmt[i]);
	/*
	 * SQLite itself leaves in the log beside it what is not yet in a file that was renamed: the
	 * log has the old name, and the next recorder removes it.
	 */
	if (store_is_moved(st))
		sqlite3_wal_checkpoint_v2(st->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	sqlite3_close(st->db);
	/* After SQLite: closing any descriptor of the file gives up its locks on it. */
	if (st->lock >= 0)
		close(st->lock);
	for (int i = 0; i < STORE_TIERS; i++)
		store_dict_clear(&st->segment[i].dict);
	store_dict_clear(&st->read_dict);
	store_put_free(&st->bytes);
	store_put_free(&st->packed);
	store_packer_free(&st->packer);
	snapshot_unref(st->late);
	free(st->path);
	free(st);
}

const char *store_library(void)
{
	return sqlite3_libversion();
}

const char *store_strerror(int rc)
{
	return rc == -EBADMSG ? "it is damaged" : strerror(-rc);
}

static struct store *store_new(void)
{
	struct store *st = calloc(1, sizeof(*st));

	if (st)
		st->lock = -1;
	return st;
}

/* The file, ours alone to read, and locked against a second recorder. -errno. */
static int open_file(const char *path, char *err, size_t size)
{
	struct stat sb;
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0)
		return fail(-errno, err, size, path, "%s",
			    errno == ELOOP ? "a symbolic link: give the file that it leads to"
					   : strerror(errno));
	if (fstat(fd, &sb) || !S_ISREG(sb.st_mode)) {
		close(fd);
		return fail(-ENODEV, err, size, path, "not a file");
	}
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		return fail(-EBUSY, err, size, path, "another kvmtop records into it");
	}
	return fd;
}

/* It holds names and command lines; a wider mode is whoever's mistake. */
static int make_private(const struct store *st, const char *path, char *err, size_t size)
{
	struct stat sb;

	if (fstat(st->lock, &sb) || ((sb.st_mode & 077) && fchmod(st->lock, 0600)))
		return fail(-EACCES, err, size, path,
			    "others may read it and its mode cannot be changed");
	return 0;
}

static int prepare(struct store *st, const char *path, char *err, size_t size)
{
	int rc = look(st, path, err, size);

	if (rc < 0)
		return rc; /* another's file: it stays as it is */
	if (make_private(st, path, err, size))
		return -EACCES;
	if (rc == 1)
		rc = store_exec(st, "PRAGMA page_size=4096");
	if (!rc)
		rc = store_exec(st, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL");
	if (!rc && store_pragma(st, "application_id") == 0)
		rc = store_exec(st, store_schema);
	if (!rc && store_pragma(st, "user_version") < STORE_VERSION_FACTS)
		rc = store_exec(st, store_schema_2);
	if (!rc && store_pragma(st, "user_version") < STORE_VERSION_WAITED)
		rc = store_exec(st, store_schema_3);
	if (!rc && store_pragma(st, "user_version") < STORE_VERSION_LESS)
		rc = store_exec(st, store_schema_5);
	if (!rc && store_pragma(st, "user_version") < STORE_VERSION)
		rc = store_exec(st, store_schema_6);
	st->version = STORE_VERSION;
	return rc ? fail_sqlite(st, rc, err, size, path) : 0;
}

/* The log beside it is no larger than a part of what the recording may take; SQLite's usual: 4 MiB.
 */
static int limit_log(struct store *st)
{
	int64_t pages = st->keep.max_bytes / PAGE / 8;
	char sql[60];

	if (st->keep.max_bytes <= 0 || pages >= 1000)
		return 0;
	snprintf(sql, sizeof(sql), "PRAGMA wal_autocheckpoint=%d", pages < 64 ? 64 : (int)pages);
	return store_exec(st, sql);
}

static int begin_session(struct store *st, const char *path, char *err, size_t size)
{
	struct store_at last = {0};
	char sql[80];
	int rc = store_find(st, STORE_LAST, 0, &last);

	if (rc && rc != -ENOENT)
		return fail(rc, err, size, path, "%s", sqlite3_errmsg(st->db));
	rc = number_of(st, store_sql[ST_LAST_ID], &st->last_id);
	if (rc)
		return fail_sqlite(st, rc, err, size, path);
	if (st->last_id > STORE_ID_MOST || last.session >= STORE_ID_MOST)
		return fail(-EBADMSG, err, size, path,
			    "a damaged recording: its intervals cannot be counted on");
	st->last_wall = last.wall;
	st->session = last.session + 1;
	rc = limit_log(st);
	if (rc || !st->keep.n)
		return rc ? fail_sqlite(st, rc, err, size, path) : 0;
	/* Tiers that there are no more, since it is gone on with other ones. */
	snprintf(sql, sizeof(sql), "UPDATE interval SET tier=%u WHERE tier>=%u", st->keep.n - 1,
		 st->keep.n);
	rc = store_exec(st, sql);
	return rc ? fail(rc, err, size, path, "%s", sqlite3_errmsg(st->db)) : 0;
}

/*
 * Names such as :memory: and file:… mean something else to SQLite than to everybody else: a path
 * that begins with neither is a path.
 */
static int open_path(const char *path, struct store *st, int flags)
{
	char *plain = NULL;
	int rc;

	if (asprintf(&plain, "%s%s", *path == '/' ? "" : "./", path) < 0)
		return SQLITE_NOMEM;
	/* A store is one thread's at a time (store.h): nothing in it is locked. */
	rc = sqlite3_open_v2(plain, &st->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
	free(plain);
	return rc;
}

int store_create(const char *path, const struct store_keep *keep, struct store **out, char *err,
		 size_t size)
{
	struct store *st = store_new();
	int rc = 0;

	if (st)
		st->path = strdup(path);
	if (!st || !st->path) {
		store_close(st);
		return fail(-ENOMEM, err, size, path, "no memory");
	}
	st->keep = *keep;
	st->lock = open_file(path, err, size);
	if (st->lock < 0)
		rc = st->lock;
	if (!rc && open_path(path, st, SQLITE_OPEN_READWRITE) != SQLITE_OK)
		rc = fail(-EIO, err, size, path, "%s", sqlite3_errmsg(st->db));
	if (!rc) {
		make_safe(st);
		rc = prepare(st, path, err, size);
	}
	if (!rc)
		rc = begin_session(st, path, err, size);
	if (rc) {
		store_close(st);
		return rc;
	}
	*out = st;
	return 0;
}

/* A path as SQLite's URI; what means something there is written as %XX. */
static void uri_of(const char *path, char *out, size_t size)
{
	/* Two slashes at its start would name a host. */
	size_t at = (size_t)snprintf(out, size, *path == '/' ? "file://" : "file:./");

	for (; *path && at + 32 < size; path++)
		at += (size_t)snprintf(out + at, size - at,
				       strchr("%?#&", *path) || (uint8_t)*path < 0x20 ? "%%%02X"
										      : "%c",
				       (uint8_t)*path);
	snprintf(out + at, size - at, "?immutable=1");
}

/*
 * Whoever reads a file in WAL mode needs to write beside it. Where one may not and nobody else
 * does either (a recording on a read-only medium), it is read as a file that never changes.
 */
static int open_for_reading(struct store *st, const char *path)
{
	char uri[8192], wal[4200];
	struct stat sb;
	int64_t application;
	int rc = open_path(path, st, SQLITE_OPEN_READONLY);

	/* Whoever puts a killed recorder's file in order has it for a moment. */
	if (rc == SQLITE_OK) {
		sqlite3_busy_timeout(st->db, BUSY_MS);
		rc = number_of(st, APPLICATION, &application);
		/* Who has it locked may be changing it. */
		if (!rc || rc == -EBUSY)
			return rc;
	}
	snprintf(wal, sizeof(wal), "%s-wal", path);
	if (stat(wal, &sb) == 0 && sb.st_size > 0)
		return rc < 0 ? rc : -EIO;
	sqlite3_close(st->db);
	st->db = NULL;
	uri_of(path, uri, sizeof(uri));
	rc = sqlite3_open_v2(uri, &st->db,
			     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
	return rc == SQLITE_OK ? number_of(st, APPLICATION, &application) : -EIO;
}

int store_open(const char *path, struct store **out, char *err, size_t size)
{
	struct store *st;
	struct stat sb;
	int rc;

	if (access(path, F_OK) && errno == ENOENT && strcmp(path, STORE_DEFAULT) == 0) {
		snprintf(err, size,
			 "nothing was recorded yet in %s: kvmtop record does it, or name a file",
			 path);
		return -ENOENT;
	}
	/* SQLite's own words for both are "unable to open database file". */
	if (stat(path, &sb) || access(path, R_OK))
		return fail(-errno, err, size, path, "%s", strerror(errno));
	if (!S_ISREG(sb.st_mode))
		return fail(-ENODEV, err, size, path, "not a file");
	st = store_new();
	if (!st)
		return fail(-ENOMEM, err, size, path, "no memory");
	rc = open_for_reading(st, path);
	if (rc) {
		rc = st->db ? fail_sqlite(st, rc, err, size, path)
			    : fail(-ENOMEM, err, size, path, "no memory");
	} else {
		make_safe(st);
		rc = look(st, path, err, size);
		if (rc == 1)
			rc = fail(-EBADMSG, err, size, path, "an empty file");
	}
	if (rc) {
		store_close(st);
		return rc;
	}
	*out = st;
	return 0;
}
