// SPDX-License-Identifier: GPL-2.0-only
/*
 * SQL of recordings (store_schema.h).
 *
 * Figures in vm and vcpu are there for whoever asks with sqlite3, as whole thousandths, which take
 * a few bytes where a floating point number takes eight; the views show them as one expects. kvmtop
 * itself reads frame.data.
 */
#include "store_schema.h"

#include "store_priv.h"

#define NUMBER_(n) #n
#define NUMBER(n) NUMBER_(n)
#define TIME_MOST NUMBER(STORE_TIME_MOST)
#define DT_MOST NUMBER(STORE_DT_MOST)
#define ID_MOST NUMBER(STORE_ID_MOST)
#define TEXT_OF(id) "(SELECT text FROM text WHERE segment=i.segment AND id=" id ")"
#define LOCAL_TIME "strftime('%Y-%m-%d %H:%M:%S',i.time/1000000000,'unixepoch','localtime')"

const char store_schema[] =
	"BEGIN;"
	"PRAGMA application_id=1802923380;"
	"PRAGMA user_version=1;"
	"CREATE TABLE segment(id INTEGER PRIMARY KEY, tier INTEGER NOT NULL);"
	"CREATE TABLE text(segment INTEGER NOT NULL, id INTEGER NOT NULL, text TEXT NOT NULL,"
	" PRIMARY KEY(segment,id)) WITHOUT ROWID;"
	"CREATE TABLE interval(id INTEGER PRIMARY KEY, time INTEGER NOT NULL, dt INTEGER NOT NULL,"
	" tier INTEGER NOT NULL, session INTEGER NOT NULL, segment INTEGER NOT NULL,"
	" merged INTEGER NOT NULL, skipped INTEGER NOT NULL, lost INTEGER NOT NULL,"
	" nvm INTEGER NOT NULL, nvcpu INTEGER NOT NULL, usr INTEGER, sys INTEGER, guest INTEGER,"
	" idle INTEGER, steal INTEGER, steal_max INTEGER, exits INTEGER, findings INTEGER);"
	"CREATE INDEX interval_time ON interval(time);"
	"CREATE INDEX interval_tier ON interval(tier,id);"
	"CREATE INDEX interval_segment ON interval(segment);"
	"CREATE TABLE frame(interval INTEGER PRIMARY KEY, length INTEGER NOT NULL,"
	" data BLOB NOT NULL);"
	"CREATE TABLE vm(interval INTEGER NOT NULL, n INTEGER NOT NULL, name INTEGER NOT NULL,"
	" vm_id INTEGER NOT NULL, pid INTEGER, cpu INTEGER, guest INTEGER, sys INTEGER,"
	" steal INTEGER, throt INTEGER, steal_max INTEGER, steal_max_vcpu INTEGER, exits INTEGER,"
	" exit INTEGER, top INTEGER, why TEXT, PRIMARY KEY(interval,n)) WITHOUT ROWID;"
	"CREATE TABLE vcpu(interval INTEGER NOT NULL, vm INTEGER NOT NULL, vcpu INTEGER NOT NULL,"
	" n INTEGER NOT NULL, cpu INTEGER, guest INTEGER, sys INTEGER, steal INTEGER,"
	" throt INTEGER, exits INTEGER, exit INTEGER, PRIMARY KEY(interval,vm,vcpu,n))"
	" WITHOUT ROWID;"
	"CREATE VIEW vms AS SELECT " LOCAL_TIME " AS at, " TEXT_OF(
		"v.name") " AS name,"
			  " v.cpu/1e3 AS cpu_pct, v.guest/1e3 AS guest_pct, v.sys/1e3 AS sys_pct,"
			  " v.steal/1e3 AS steal_pct, v.throt/1e3 AS throt_pct, v.steal_max/1e3 AS "
			  "steal_max_pct,"
			  " v.steal_max_vcpu AS steal_max_vcpu, v.exits/1e3 AS exits_per_s, "
			  "v.exit/1e3 AS exit_pct,"
			  " " TEXT_OF("v.top") " AS top_exit, v.why AS why, " TEXT_OF(
				  "v.vm_id") " AS vm_id,"
					     " v.pid AS pid, i.dt/1e9 AS seconds, i.id AS interval"
					     " FROM interval i JOIN vm v ON v.interval=i.id;"
					     "CREATE VIEW vcpus AS SELECT " LOCAL_TIME
					     " AS at, " TEXT_OF(
						     "v.name") " AS name,"
							       " c.vcpu AS vcpu, c.cpu/1e3 AS "
							       "cpu_pct, c.guest/1e3 AS guest_pct, "
							       "c.sys/1e3 AS sys_pct,"
							       " c.steal/1e3 AS steal_pct, "
							       "c.throt/1e3 AS throt_pct, "
							       "c.exits/1e3 AS exits_per_s,"
							       " c.exit/1e3 AS exit_pct, " TEXT_OF(
								       "v.vm_id") " AS vm_id, "
										  "i.dt/1e9 AS "
										  "seconds,"
										  " i.id AS "
										  "interval"
										  " FROM interval "
										  "i JOIN vm v ON "
										  "v.interval=i.id"
										  " JOIN vcpu c ON "
										  "c.interval=i.id "
										  "AND c.vm=v.n;"
										  "COMMIT;";

/* Written anew as a whole whenever one changes, which is seldom. */
const char store_schema_2[] =
	"BEGIN;"
	"CREATE TABLE facts(since INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,"
	" PRIMARY KEY(since,name)) WITHOUT ROWID;"
	"CREATE TABLE tsc(interval INTEGER NOT NULL, session INTEGER NOT NULL, wall INTEGER NOT "
	"NULL,"
	" vm TEXT NOT NULL, vm_id TEXT NOT NULL, vcpu INTEGER NOT NULL, at INTEGER, prev INTEGER,"
	" next INTEGER NOT NULL, ratio INTEGER, frac_bits INTEGER);"
	"PRAGMA user_version=2;"
	"COMMIT;";

/* Who had the CPU while vCPUs waited: of each VM the first few that matter. */
const char store_schema_3[] =
	"BEGIN;"
	"CREATE TABLE waited(interval INTEGER NOT NULL, vm INTEGER NOT NULL, n INTEGER NOT NULL,"
	" by INTEGER NOT NULL, kind TEXT NOT NULL, ns INTEGER NOT NULL, share INTEGER, pct INTEGER,"
	" PRIMARY KEY(interval,vm,n)) WITHOUT ROWID;"
	"CREATE VIEW waits AS SELECT " LOCAL_TIME " AS at, " TEXT_OF(
		"v.name") " AS name,"
			  " " TEXT_OF(
				  "w.by") " AS by, w.kind AS by_kind, w.ns/1e9 AS waited_s,"
					  " w.share/1e3 AS share_pct, w.pct/1e3 AS waited_pct,"
					  " " TEXT_OF(
						  "v.vm_id") " AS vm_id, i.dt/1e9 AS seconds, i.id"
							     " AS interval FROM interval i JOIN vm"
							     " v ON v.interval=i.id JOIN waited w"
							     " ON w.interval=i.id AND w.vm=v.n;"
							     "PRAGMA user_version=3;"
							     "COMMIT;";

/* The tables are the same: older programs are told that they cannot read what is in them. */
const char store_schema_5[] = "PRAGMA user_version=5;";

/* Not by ALTER TABLE, which wants to understand views that somebody else added. */
const char store_schema_6[] =
	"BEGIN;"
	"DROP TABLE segment;"
	"CREATE TABLE segment(id INTEGER PRIMARY KEY);"
	"INSERT INTO segment SELECT DISTINCT segment FROM interval WHERE typeof(segment)='integer';"
	"DROP VIEW IF EXISTS hosts;"
	"CREATE VIEW hosts AS SELECT " LOCAL_TIME " AS at, i.dt/1e9 AS seconds, i.nvm AS vms,"
	" i.nvcpu AS vcpus, i.usr/1e3 AS usr_pct, i.sys/1e3 AS sys_pct, i.guest/1e3 AS guest_pct,"
	" i.idle/1e3 AS idle_pct, i.steal/1e3 AS steal_pct, i.steal_max/1e3 AS steal_max_pct,"
	" i.exits/1e3 AS exits_per_s, i.findings AS findings, i.lost AS lost, i.skipped AS "
	"skipped, i.merged AS merged,"
	" i.id AS interval FROM interval i;"
	"PRAGMA user_version=6;"
	"COMMIT;";

const char store_schema_check[] =
	"SELECT count(*) FROM sqlite_schema WHERE type='table' AND rootpage>0 AND sql NOT LIKE"
	" 'CREATE VIRTUAL%' AND sql NOT LIKE '%GENERATED%' AND name IN"
	" ('segment','text','interval','frame','vm','vcpu','facts','tsc','waited')";

#define COLUMNS "id,time,dt,session,skipped"
/*
 * What a file of somebody else has beyond these is not seen: nothing overflows by the rest. The
 * plus keeps it out of the choice of an index.
 */
#define SOUND                                                                                      \
	"+time BETWEEN 0 AND " TIME_MOST " AND +dt BETWEEN 0 AND " DT_MOST                         \
	" AND +session BETWEEN 0 AND " ID_MOST " AND +id BETWEEN 1 AND " ID_MOST

const char *const store_sql[] = {
	[ST_BEGIN] = "BEGIN IMMEDIATE",
	[ST_COMMIT] = "COMMIT",
	[ST_ROLLBACK] = "ROLLBACK",
	[ST_SEGMENT] = "INSERT INTO segment VALUES(1+max("
		       "coalesce((SELECT max(id) FROM segment),0),"
		       "coalesce((SELECT max(segment) FROM text),0),"
		       "coalesce((SELECT max(segment) FROM interval),0)))",
	[ST_TEXT] = "INSERT INTO text VALUES(?,?,?)",
	[ST_INTERVAL] = "INSERT INTO interval VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[ST_FRAME] = "INSERT INTO frame VALUES(?,?,?)",
	[ST_VM] = "INSERT INTO vm VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
	[ST_VCPU] = "INSERT INTO vcpu VALUES(?,?,?,?,?,?,?,?,?,?,?)",
	[ST_WAITED] = "INSERT INTO waited VALUES(?,?,?,?,?,?,?,?)",
	[ST_AT] = "SELECT " COLUMNS " FROM interval WHERE time<=? AND " SOUND
		  " ORDER BY time DESC,id DESC"
		  " LIMIT 1",
	[ST_FROM] = "SELECT " COLUMNS " FROM interval WHERE time>=? AND " SOUND
		    " ORDER BY time,id LIMIT 1",
	[ST_NEXT] = "SELECT " COLUMNS " FROM interval WHERE id>? AND " SOUND " ORDER BY id LIMIT 1",
	[ST_BEFORE] = "SELECT " COLUMNS " FROM interval WHERE id<? AND " SOUND
		      " ORDER BY id DESC LIMIT 1",
	[ST_WITHIN] =
		"SELECT " COLUMNS " FROM interval WHERE id>? AND +time>? AND time-dt<? AND " SOUND
		" ORDER BY id LIMIT 1",
	[ST_FIRST] = "SELECT " COLUMNS " FROM interval WHERE " SOUND " ORDER BY id LIMIT 1",
	[ST_LAST] = "SELECT " COLUMNS " FROM interval WHERE " SOUND " ORDER BY id DESC LIMIT 1",
	/* Rows of a damaged file may belong to no interval: theirs are not used again either. */
	[ST_LAST_ID] = "SELECT max(coalesce((SELECT max(id) FROM interval),0),"
		       "coalesce((SELECT max(interval) FROM frame),0),"
		       "coalesce((SELECT max(interval) FROM vm),0),"
		       "coalesce((SELECT max(interval) FROM vcpu),0),"
		       "coalesce((SELECT max(interval) FROM waited),0))",
	[ST_READ] = "SELECT segment,length,data FROM interval JOIN frame ON interval=id WHERE id=?",
	[ST_GET_TEXT] = "SELECT text FROM text WHERE segment=? AND id=?",
	[ST_OLDEST] = "SELECT id,time,session,merged,skipped,segment FROM interval WHERE tier=?"
		      " ORDER BY id LIMIT ?",
	[ST_TIME_AFTER] = "SELECT time FROM interval WHERE tier=? AND id>? AND +time<=?"
			  " ORDER BY id LIMIT 1",
	[ST_DEL_FRAME] = "DELETE FROM frame WHERE interval=?",
	[ST_DEL_VM] = "DELETE FROM vm WHERE interval=?",
	[ST_DEL_VCPU] = "DELETE FROM vcpu WHERE interval=?",
	[ST_DEL_WAITED] = "DELETE FROM waited WHERE interval=?",
	[ST_DEL_INTERVAL] = "DELETE FROM interval WHERE id=?",
	[ST_DEL_TEXT] = "DELETE FROM text WHERE segment=?1 AND NOT EXISTS"
			" (SELECT 1 FROM interval WHERE segment=?1)",
	[ST_DEL_SEGMENT] = "DELETE FROM segment WHERE id=?1 AND NOT EXISTS"
			   " (SELECT 1 FROM interval WHERE segment=?1)",
	[ST_COUNT] = "SELECT count(*) FROM interval WHERE tier=?",
	[ST_ORIGIN] = "SELECT tier,merged,skipped FROM interval WHERE id=?",
	[ST_FACT] = "INSERT INTO facts VALUES(?,?,?)",
	[ST_FACTS] = "SELECT name,value FROM facts WHERE since="
		     "(SELECT max(since) FROM facts WHERE since<=?)",
	[ST_DEL_FACTS] = "DELETE FROM facts WHERE since>=?",
	[ST_OLD_FACTS] = "DELETE FROM facts WHERE since<(SELECT max(since) FROM facts WHERE since<="
			 "(SELECT min(id) FROM interval))",
	[ST_TSC] = "INSERT INTO tsc VALUES(?,?,?,?,?,?,?,?,?,?,?)",
	[ST_OLD_TSC] = "DELETE FROM tsc WHERE rowid<=(SELECT max(rowid) FROM tsc)-?",
	/* Of the VM that had the name last, and of the recorder's run that saw it last. */
	[ST_TSC_OF] = "SELECT vcpu,at,prev,next,ratio,frac_bits FROM tsc JOIN (SELECT vm_id AS v,"
		      "session AS s FROM tsc WHERE vm=?1 OR vm_id=?1 ORDER BY rowid DESC LIMIT 1)"
		      " ON vm_id=v AND session=s ORDER BY tsc.rowid",
	[ST_TSC_UP_TO] = "SELECT * FROM tsc WHERE interval<=? ORDER BY rowid",
	[ST_RANGE] = "SELECT min(time),max(time),count(*),(SELECT time FROM interval WHERE " SOUND
		     " ORDER BY id DESC LIMIT 1),EXISTS(SELECT 1 FROM interval)"
		     " FROM interval WHERE time BETWEEN 0 AND " TIME_MOST,
	/*
	 * The worst of each part: steal that somebody notices, else findings, else steal. Figures
	 * of the row are those of the one that has the maximum: SQLite says so.
	 */
	[ST_MOMENTS] = "SELECT id,time,steal,dt,findings,max((steal>=1000*" NUMBER(
		STEAL_NOTICE) ")*steal*10000000000+findings*10000000+steal),part FROM"
			      " (SELECT id,time,dt,min(max(coalesce(steal_max,0),0),1000000)"
			      " AS steal,min(max(coalesce(findings,0),0),999) AS findings,"
			      "(time-?1)/?2 AS part FROM interval WHERE time BETWEEN ?1 AND ?3)"
			      " GROUP BY part ORDER BY part LIMIT ?4",
};
