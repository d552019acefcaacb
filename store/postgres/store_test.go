package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/testenv"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/store/postgres"
	"github.com/fermata-agents/fermata/store/postgres/pgtest"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

// patience bounds what a test waits for. Nothing takes nearly as long.
const patience = time.Minute

// server is that of all tests.
var server = sync.OnceValues(func() (*pgtest.Server, error) { return pgtest.Start(context.Background()) })

func TestMain(m *testing.M) {
	status := m.Run()
	if s, err := server(); err == nil {
		s.Stop()
	}
	os.Exit(status)
}

// database is the URL of the server of all tests.
func database(t *testing.T) string {
	t.Helper()
	s, err := server()
	if errors.Is(err, pgtest.ErrMissing) {
		testenv.Need(t, err)
	}
	require.NoError(t, err)
	return s.URL()
}

var schemas atomic.Int64

// schema names a schema that is removed with the test. Its name wants quoting.
func schema(t *testing.T) string {
	t.Helper()
	database(t) // skips the test if there is no PostgreSQL
	name := fmt.Sprintf(`Test "%d" of %d`, schemas.Add(1), os.Getpid())
	t.Cleanup(func() {
		sql(t, `DROP SCHEMA IF EXISTS `+pgx.Identifier{name}.Sanitize()+` CASCADE`)
	})
	return name
}

// sql does a statement beside the store, and returns its rows' first column.
func sql(t *testing.T, statement string, args ...any) []any {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // also in a cleanup
	conn, err := pgx.Connect(ctx, database(t))
	require.NoError(t, err)
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, statement, args...)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (any, error) {
		values, err := r.Values()
		return values[0], err
	})
	require.NoError(t, err)
	return all
}

func open(t *testing.T, schema string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), database(t), &postgres.Options{Schema: schema})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// PostgreSQL is a store as every other (OA-89).
func TestPostgresIsAStore(t *testing.T) {
	conformance.Store(t, func(t *testing.T) store.Store { return open(t, schema(t)) })
}

// Without prepared statements, as behind a pool that shares connections.
func TestPostgresIsAStoreBehindAPool(t *testing.T) {
	at, err := url.Parse(database(t))
	require.NoError(t, err)
	q := at.Query()
	q.Set("default_query_exec_mode", "exec")
	q.Set("pool_max_conns", "1")
	at.RawQuery = q.Encode()
	conformance.Store(t, func(t *testing.T) store.Store {
		s, err := postgres.Open(t.Context(), at.String(), &postgres.Options{Schema: schema(t)})
		require.NoError(t, err)
		t.Cleanup(s.Close)
		return s
	})
}

func TestManyProcessesMayStartAtOnce(t *testing.T) {
	name := schema(t)
	stores := make([]*postgres.Store, 8)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			var err error
			if stores[i], err = postgres.Open(t.Context(), database(t), &postgres.Options{Schema: name}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	for i, s := range stores {
		defer s.Close()
		require.NoError(t, s.PutHead(t.Context(), store.Head{V: 1, Version: int64(i) + 1, Session: "s"}), "each sees what the one before wrote")
	}
}

func TestTheTablesOfANewerBuildAreRefused(t *testing.T) {
	name := schema(t)
	open(t, name).Close()
	sql(t, `UPDATE `+pgx.Identifier{name, "version"}.Sanitize()+` SET version = version + 1`)
	_, err := postgres.Open(t.Context(), database(t), &postgres.Options{Schema: name})
	require.ErrorIs(t, err, agent.CodeIncompatible)
	require.Contains(t, err.Error(), "version 2; this build reads up to 1")
}

// An administrator may make the schema and give the worker's role no right to.
func TestAReadyStoreNeedsNoRightToMakeOne(t *testing.T) {
	name := schema(t)
	open(t, name).Close()
	quoted, role := pgx.Identifier{name}.Sanitize(), fmt.Sprintf("worker%d", os.Getpid())
	sql(t, `CREATE ROLE `+role+` LOGIN PASSWORD 'humble'`)
	t.Cleanup(func() { sql(t, `DROP OWNED BY `+role); sql(t, `DROP ROLE `+role) })
	sql(t, `GRANT USAGE ON SCHEMA `+quoted+` TO `+role)
	sql(t, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA `+quoted+` TO `+role)
	config, err := pgx.ParseConfig(database(t))
	require.NoError(t, err)
	as := fmt.Sprintf("postgres://%s:humble@/%s?host=%s&port=%d", role, config.Database, config.Host, config.Port)
	s, err := postgres.Open(t.Context(), as, &postgres.Options{Schema: name})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.PutChunk(t.Context(), "d", []byte("x")))

	_, err = postgres.Open(t.Context(), as, &postgres.Options{Schema: "of nobody"})
	require.ErrorIs(t, err, agent.CodeStoreUnavailable)
	require.Contains(t, err.Error(), "permission denied")
}

// blocked starts a write that waits for another transaction, and returns when it
// waits, with what lets it go and what it returns.
func blocked(ctx context.Context, t *testing.T, s *postgres.Store, schema string) (pid any, release func(), result <-chan error) {
	t.Helper()
	require.NoError(t, s.PutHead(ctx, store.Head{V: 1, Version: 1, Session: "s"}))
	conn, err := pgx.Connect(t.Context(), database(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM `+pgx.Identifier{schema, "heads"}.Sanitize()+` FOR UPDATE`)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- s.PutHead(ctx, store.Head{V: 1, Version: 2, Session: "s"}) }()
	require.Eventually(t, func() bool {
		for _, pid = range sql(t, `SELECT pid FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))`, conn.PgConn().PID()) {
			return true
		}
		return false
	}, patience, 10*time.Millisecond)
	return pid, func() { require.NoError(t, tx.Rollback(t.Context())) }, done
}

func TestAConnectionThatIsCutIsLeftBehind(t *testing.T) {
	name := schema(t)
	s := open(t, name)
	pid, release, result := blocked(t.Context(), t, s, name)
	sql(t, `SELECT pg_terminate_backend($1)`, pid)
	err := <-result
	require.ErrorIs(t, err, agent.CodeStoreUnavailable)
	var e *agent.Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Retryable)
	release()
	require.NoError(t, s.PutHead(t.Context(), store.Head{V: 1, Version: 2, Session: "s"}), "nothing was changed, and the next call works")
}

func TestCallsGoOnWhileConnectionsAreCut(t *testing.T) {
	s := open(t, schema(t))
	cut := func() {
		sql(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'fermata' AND pid <> pg_backend_pid()`)
	}
	for version := range int64(20) {
		cut()
		h := store.Head{V: 1, Version: version + 1, Session: "s"}
		require.Eventually(t, func() bool {
			err := s.PutHead(t.Context(), h)
			if errors.Is(err, agent.CodeStale) { // an answer was lost, and not the write
				stored, readErr := s.Head(t.Context(), "s")
				return readErr == nil && stored.Version == h.Version
			}
			if err != nil && !errors.Is(err, agent.CodeStoreUnavailable) {
				t.Error(err)
			}
			return err == nil
		}, patience, time.Millisecond)
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	name := schema(t)
	s := open(t, name)
	ctx, cancel := context.WithCancel(t.Context())
	_, _, result := blocked(ctx, t, s, name)
	cancel()
	select {
	case err := <-result:
		require.ErrorIs(t, err, agent.CodeStoreUnavailable)
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(patience):
		t.Fatal("the write goes on without its context")
	}
}

func TestNoErrorHasThePassword(t *testing.T) {
	const password = "hunter%402" // hunter@2
	for name, url := range map[string]string{
		"nobody listens":       "postgres://ana:" + password + "@127.0.0.1:1/db",
		"a setting is unknown": "postgres://ana:" + password + "@127.0.0.1:1/db?sslmode=perhaps",
		"a pool can't be":      "postgres://ana:" + password + "@127.0.0.1:1/db?pool_max_conns=many",
		"not escaped, @":       "postgres://ana:hunter@2@127.0.0.1:1/db",
		"not escaped, /":       "postgres://ana:hunter/2@127.0.0.1:1/db",
		"not escaped, #":       "postgres://ana:2#hunter@127.0.0.1:1/db",
		"not escaped, space":   "postgres://ana:hunter 2%@127.0.0.1:1/db",
		"in the query":         "postgres://ana@127.0.0.1:1/db?password=" + password + "&sslmode=disable",
		"another scheme":       "mysql://ana:" + password + "@127.0.0.1:1/db",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := postgres.Open(t.Context(), url, nil)
			require.Error(t, err)
			for at := err; at != nil; at = errors.Unwrap(at) {
				require.NotContains(t, at.Error(), "hunter")
			}
			if strings.Contains(err.Error(), "form is") {
				require.ErrorIs(t, err, agent.CodeInvalidInput)
			} else {
				require.ErrorIs(t, err, agent.CodeStoreUnavailable)
				require.Contains(t, err.Error(), "127.0.0.1:1, database db, schema fermata")
			}
		})
	}
}

func TestTheSchemasNameIsBounded(t *testing.T) {
	_, err := postgres.Open(t.Context(), database(t), &postgres.Options{Schema: strings.Repeat("s", 64)})
	require.ErrorIs(t, err, agent.CodeInvalidInput)
}
