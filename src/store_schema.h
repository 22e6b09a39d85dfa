// SPDX-License-Identifier: GPL-2.0-only
/* The tables and views of a recording, and what is asked of them (docs/recording.md). */
#ifndef KVMTOP_STORE_SCHEMA_H
#define KVMTOP_STORE_SCHEMA_H

#define STORE_TABLE_COUNT 9
#define STORE_TABLES_OF_2 2 /* which version 1 has not */
#define STORE_TABLES_OF_3 1 /* which version 2 has not */

extern const char store_schema[]; /* makes a new recording of version 1, one transaction */
extern const char store_schema_2[]; /* makes one of version 1 one of version 2, as well */
extern const char store_schema_3[]; /* the same from 2 to 3 */
extern const char store_schema_5[]; /* the same from 3 or 4 to 5 */
extern const char store_schema_6[]; /* the same from 5 to 6 */
extern const char store_schema_check[]; /* gives STORE_TABLE_COUNT where all are there */
extern const char *const store_sql[]; /* by enum store_statement */

#endif
