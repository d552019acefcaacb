package postgres

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-agents/fermata/agent"
)

// migrations create the tables: the n-th one upgrades them from version n-1 to n. A
// released one never changes. {schema} is the schema's name.
var migrations = []string{`
-- A row stays when its session is deleted, without the name and the head: no version
-- is given twice.
CREATE TABLE {schema}.heads (
	name    bytea  PRIMARY KEY, -- SHA-256 of the session's name
	session text   COLLATE "C" UNIQUE,
	version bigint NOT NULL,
	chain   bigint NOT NULL, -- these three are the fence
	n       bigint NOT NULL,
	by      text   NOT NULL,
	head    json
);
CREATE TABLE {schema}.chunks (
	name text COLLATE "C" PRIMARY KEY,
	data bytea NOT NULL,
	put  timestamptz NOT NULL
);
-- Chunks are compressed already.
ALTER TABLE {schema}.chunks ALTER COLUMN data SET STORAGE EXTERNAL;
-- What is of the store itself, such as its identity.
CREATE TABLE {schema}.store (
	key   text PRIMARY KEY,
	value text NOT NULL
);
`}

// PutIfAbsent implements [store.Store].
func (s *Store) PutIfAbsent(ctx context.Context, key, value string) (kept string, err error) {
	read := s.sql(`SELECT value FROM {schema}.store WHERE key = $1`)
	err = s.pool.QueryRow(ctx, read, key).Scan(&kept)
	if errors.Is(err, pgx.ErrNoRows) && value == "" {
		return "", nil
	}
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err = s.pool.Exec(ctx, s.sql(`INSERT INTO {schema}.store VALUES ($1, $2) ON CONFLICT DO NOTHING`), key, value); err == nil {
			// Read again: if two insert at once, both have to return the value of one.
			err = s.pool.QueryRow(ctx, read, key).Scan(&kept)
		}
	}
	if err != nil {
		return "", s.unavailable(err, "reading the %s of the store in %s", key, s.name)
	}
	return kept, nil
}

// sql replaces {schema} in a statement.
func (s *Store) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", s.schema)
}

// migrate upgrades the tables. If they are up to date, it takes no lock and needs only
// the right to read.
func (s *Store) migrate(ctx context.Context, conn *pgx.Conn, steps []string) error {
	version, err := s.version(ctx, conn)
	if err == nil && version < len(steps) {
		err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error { version, err = s.upgrade(ctx, tx, steps); return err })
	}
	if err != nil {
		return s.unavailable(err, "opening the store in %s", s.name)
	}
	if version > len(steps) {
		return agent.Errorf(agent.CodeIncompatible, "the store in %s has tables of version %d; this build reads up to %d", s.name, version, len(steps))
	}
	return nil
}

// upgrade runs the missing migrations. One of many processes runs them; the others wait
// for the lock and find them done.
func (s *Store) upgrade(ctx context.Context, tx pgx.Tx, steps []string) (version int, err error) {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtext('fermata store'), hashtext($1))`, s.schema); err != nil {
		return 0, err
	}
	// Again, now with the lock: another process may have upgraded since.
	if version, err = s.version(ctx, tx); err != nil || version >= len(steps) {
		return version, err
	}
	var made bool // creating a schema needs a right of its own
	if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)`, s.plain).Scan(&made); err != nil {
		return 0, err
	}
	todo := []string{`CREATE TABLE IF NOT EXISTS {schema}.version (version int NOT NULL)`}
	if !made {
		todo = append([]string{`CREATE SCHEMA {schema}`}, todo...)
	}
	todo = append(todo, steps[version:]...)
	todo = append(todo, `DELETE FROM {schema}.version`)
	for _, step := range todo {
		if _, err := tx.Exec(ctx, s.sql(step)); err != nil {
			return 0, err
		}
	}
	_, err = tx.Exec(ctx, `INSERT INTO `+s.schema+`.version VALUES ($1)`, len(steps))
	return len(steps), err
}

// version returns the version of the tables; 0 if there are none.
func (s *Store) version(ctx context.Context, db interface {
	QueryRow(context.Context, string, ...any) pgx.Row
}) (version int, err error) {
	// A query on the catalogue: functions such as to_regclass may see a state from before
	// the lock.
	var there bool
	err = db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON c.relnamespace = n.oid
		WHERE n.nspname = $1 AND c.relname = 'version')`, s.plain).Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	err = db.QueryRow(ctx, `SELECT coalesce(max(version), 0) FROM `+s.schema+`.version`).Scan(&version)
	return version, err
}
