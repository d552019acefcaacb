package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// Store is a store in a PostgreSQL database. It is safe for concurrent use, also by many
// processes on one database. Make one with [Open] or [New].
type Store struct {
	pool   *pgxpool.Pool
	plain  string // the schema's name
	schema string // the same, quoted for SQL
	name   string
	secret string      // the password, which no error contains
	ready  atomic.Bool // the tables are up to date
}

// Options are optional; nil means all defaults.
type Options struct {
	// Schema is the PostgreSQL schema of the tables, at most 63 bytes; empty means
	// "fermata". Stores in different schemas are separate.
	Schema string
}

// Open connects to a database by its URL, postgres://USER:PASSWORD@HOST:PORT/NAME, and
// creates or migrates the tables. The caller closes the store. libpq's environment
// variables (PGPASSWORD and others) fill in what the URL leaves out.
//
// Errors are [agent.CodeInvalidInput] for an invalid URL or schema,
// [agent.CodeIncompatible] if a newer build has made the tables, and
// [agent.CodeStoreUnavailable] if the database does not answer or refuses.
func Open(ctx context.Context, url string, o *Options) (*Store, error) {
	s, err := New(url, o)
	if err != nil {
		return nil, err
	}
	if err := s.Ready(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// New returns a store that connects and prepares its tables only when it is first used.
// So each method may return the errors of [Open]. A URL with pool_min_conns connects at
// once.
func New(url string, o *Options) (*Store, error) {
	const most = 63 // bytes of a name; PostgreSQL cuts off the rest
	schema := "fermata"
	if o != nil && o.Schema != "" {
		schema = o.Schema
	}
	if len(schema) > most {
		return nil, agent.Errorf(agent.CodeInvalidInput, "schema %q of the PostgreSQL store: a name has at most %d bytes", schema, most)
	}
	config, err := configOf(url)
	if err != nil {
		return nil, err
	}
	c := config.ConnConfig
	s := &Store{plain: schema, schema: pgx.Identifier{schema}.Sanitize(), secret: c.Password,
		name: fmt.Sprintf("PostgreSQL at %s:%d, database %s, schema %s", c.Host, c.Port, c.Database, schema)}
	// With each new connection, so that a database that was away at the start is prepared later.
	config.AfterConnect = s.prepare
	if s.pool, err = pgxpool.NewWithConfig(context.Background(), config); err != nil {
		return nil, s.unavailable(err, "opening the store in %s", s.name)
	}
	return s, nil
}

// Ready connects to the database and prepares the tables. Its errors are those of [Open].
func (s *Store) Ready(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return s.unavailable(err, "opening the store in %s", s.name)
	}
	conn.Release()
	return nil
}

// prepare prepares the tables with the first connection. The pool connects without its
// caller's deadline, so it needs a timeout of its own. A database that accepts a
// connection and then says nothing would otherwise occupy all connections for ever.
func (s *Store) prepare(ctx context.Context, conn *pgx.Conn) error {
	if s.ready.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, conn.Config().ConnectTimeout)
	defer cancel()
	err := s.migrate(ctx, conn, migrations)
	s.ready.Store(err == nil)
	return err
}

// connectFor is the timeout for connecting, and again for preparing the tables, if
// neither the URL nor PGCONNECT_TIMEOUT sets one. The next caller tries again.
const connectFor = 10 * time.Second

// configOf parses a URL. The error of an unreadable URL does not quote it, because the
// text may be part of the password.
func configOf(text string) (*pgxpool.Config, error) {
	const form = "postgres://USER:PASSWORD@HOST:PORT/NAME, where special characters of the password are escaped (%40 for @)"
	u, err := url.Parse(text)
	if err != nil || u.Fragment != "" || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the URL of the PostgreSQL store can't be read; its form is %s", form)
	}
	config, err := pgxpool.ParseConfig(text)
	if err != nil {
		why := "a setting is not valid"
		if cause := errors.Unwrap(err); cause != nil {
			why = cause.Error()
		}
		return nil, agent.Errorf(agent.CodeInvalidInput, "the URL of the PostgreSQL store can't be used: %s; its form is %s", why, form)
	}
	if config.ConnConfig.ConnectTimeout == 0 { // connect_timeout
		config.ConnConfig.ConnectTimeout = connectFor
	}
	if params := config.ConnConfig.RuntimeParams; params["application_name"] == "" {
		params["application_name"] = "fermata"
	}
	return config, nil
}

// Close closes the store's connections once the calls in progress have ended.
func (s *Store) Close() { s.pool.Close() }

// String returns where the store is, without a password.
func (s *Store) String() string { return s.name }

// unavailable returns an error that a later attempt may cure. It contains its cause only
// if that is a context's: other causes reveal too much of the connection.
func (s *Store) unavailable(err error, format string, args ...any) error {
	if known := new(agent.Error); errors.As(err, &known) {
		return err // of the tables, see prepare
	}
	why := strings.Join(strings.Fields(err.Error()), " ")
	if s.secret != "" {
		why = strings.ReplaceAll(why, s.secret, "xxxxx")
	}
	e := agent.Errorf(agent.CodeStoreUnavailable, "%s: %s", fmt.Sprintf(format, args...), why)
	for _, over := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, over) {
			e.Err = over
		}
	}
	return e
}

// PutChunk implements [store.Store].
func (s *Store) PutChunk(ctx context.Context, name string, data []byte) error {
	if data == nil {
		data = []byte{} // nil is NULL
	}
	_, err := s.pool.Exec(ctx, `INSERT INTO `+s.schema+`.chunks (name, data, put) VALUES ($1, $2, clock_timestamp())
		ON CONFLICT (name) DO UPDATE SET put = clock_timestamp()`, name, data)
	if err != nil {
		return s.unavailable(err, "writing chunk %s to %s", name, s.name)
	}
	return nil
}

// Chunk implements [store.Store].
func (s *Store) Chunk(ctx context.Context, name string) (data []byte, err error) {
	err = s.pool.QueryRow(ctx, `SELECT data FROM `+s.schema+`.chunks WHERE name = $1`, name).Scan(&data)
	return s.chunk(name, data, err)
}

// ChunkStart implements [store.Store].
func (s *Store) ChunkStart(ctx context.Context, name string, most int) (data []byte, err error) {
	err = s.pool.QueryRow(ctx, `SELECT substring(data FROM 1 FOR $2) FROM `+s.schema+`.chunks WHERE name = $1`, name, most).Scan(&data)
	return s.chunk(name, data, err)
}

// chunk returns what was read of a chunk, or its error.
func (s *Store) chunk(name string, data []byte, err error) ([]byte, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, store.Missing(name, s.name)
	}
	if err != nil {
		return nil, s.unavailable(err, "reading chunk %s from %s", name, s.name)
	}
	return data, nil
}

// DeleteChunk implements [store.Store].
func (s *Store) DeleteChunk(ctx context.Context, name string, before time.Time) (gone bool, err error) {
	tag, err := s.pool.Exec(ctx, `DELETE FROM `+s.schema+`.chunks WHERE name = $1 AND put < $2`, name, before)
	if err == nil && tag.RowsAffected() > 0 {
		return true, nil
	}
	// No row was deleted: it is missing, or too young.
	if err == nil {
		err = s.pool.QueryRow(ctx, `SELECT NOT EXISTS (SELECT FROM `+s.schema+`.chunks WHERE name = $1)`, name).Scan(&gone)
	}
	if err != nil {
		return false, s.unavailable(err, "deleting chunk %s from %s", name, s.name)
	}
	return gone, nil
}

// key returns the primary key of a session's row.
func key(session string) []byte {
	// The row outlives its session, and must not keep the session's name.
	sum := sha256.Sum256([]byte(session))
	return sum[:]
}

// Head implements [store.Store].
func (s *Store) Head(ctx context.Context, session string) (store.Head, error) {
	none := store.Head{Session: session}
	var head []byte
	err := s.pool.QueryRow(ctx, `SELECT head, version, chain, n, by FROM `+s.schema+`.heads WHERE name = $1`, key(session)).
		Scan(&head, &none.Version, &none.Fence.Chain, &none.Fence.N, &none.Fence.By)
	if err == nil && head != nil {
		return decode(key(session), session, head)
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return store.Head{}, s.unavailable(err, "reading the head of session %s from %s", session, s.name)
	}
	return none, agent.Errorf(agent.CodeNotFound, "session %s is not in the store, %s", session, s.name)
}

// decode decodes the head in a row.
func decode(name []byte, session string, data []byte) (h store.Head, err error) {
	err = json.Unmarshal(data, &h)
	if err == nil && (h.Session != session || !bytes.Equal(name, key(session))) {
		err = errors.New("it belongs to another session")
	}
	if err != nil {
		return store.Head{Session: session}, agent.Errorf(agent.CodeChunkDamaged, "the head of session %s is damaged: %w; restore it from a backup of the database", session, err)
	}
	return h, nil
}

// latest is store.MaxChain for SQL.
var latest = strconv.FormatInt(store.MaxChain, 10)

// PutHead implements [store.Store].
func (s *Store) PutHead(ctx context.Context, h store.Head) error {
	data, err := json.Marshal(h)
	if err != nil {
		return agent.Errorf(agent.CodeInternal, "encoding the head of session %s: %w", h.Session, err)
	}
	// The insert below has no stored chain to compare with.
	if h.Fence.Chain > store.MaxChain && h.Version == 1 {
		return h.CheckReplaces(store.Head{})
	}
	// The same as store.Head.CheckReplaces, in one statement.
	swap := `UPDATE ` + s.schema + `.heads SET session = $2, version = $3, chain = $4, n = $5, by = $6, head = $7::json
		WHERE name = $1 AND version = $3 - 1 AND (chain, n) <= ($4, $5) AND ($4 <= ` + latest + ` OR $4 - 1 <= chain)`
	if h.Version == 1 {
		swap = `INSERT INTO ` + s.schema + `.heads (name, session, version, chain, n, by, head) VALUES ($1, $2, $3, $4, $5, $6, $7::json) ON CONFLICT DO NOTHING`
	}
	tag, err := s.pool.Exec(ctx, swap, key(h.Session), h.Session, h.Version, h.Fence.Chain, h.Fence.N, h.Fence.By, string(data))
	if err != nil {
		return s.unavailable(err, "writing the head of session %s to %s", h.Session, s.name)
	}
	// One statement can't say which condition failed. The caller reads the head again.
	if tag.RowsAffected() == 0 {
		return agent.Errorf(agent.CodeStale, "the stored head of session %s has another version than %d, or a higher fence: another run wrote it", h.Session, h.Version-1)
	}
	return nil
}

// DeleteHead implements [store.Store].
func (s *Store) DeleteHead(ctx context.Context, session string, version int64) error {
	tag, err := s.pool.Exec(ctx, `UPDATE `+s.schema+`.heads SET session = NULL, head = NULL, version = version + 1
		WHERE name = $1 AND version = $2 AND head IS NOT NULL`, key(session), version)
	// No row was changed. A head that is gone already is no error, another version is one.
	left := false
	if err == nil && tag.RowsAffected() == 0 {
		err = s.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+s.schema+`.heads WHERE session = $1)`, session).Scan(&left)
	}
	switch {
	case err != nil:
		return s.unavailable(err, "deleting the head of session %s from %s", session, s.name)
	case left:
		return agent.Errorf(agent.CodeStale, "the head of session %s does not have version %d: another run wrote it", session, version)
	}
	return nil
}

// page is how many rows a list reads at once, so that no connection is in use while the
// caller works.
const page = 500

// Heads implements [store.Store].
func (s *Store) Heads(ctx context.Context, prefix string) iter.Seq2[store.Head, error] {
	type row struct {
		name    []byte
		session string
		head    []byte
	}
	list := `SELECT name, session, head FROM ` + s.schema + `.heads WHERE session > $1 AND session ^@ $2 ORDER BY session LIMIT $3`
	return func(yield func(store.Head, error) bool) {
		for last, more := "", true; more; {
			rows, err := collect(ctx, s, func(r pgx.CollectableRow) (one row, err error) {
				return one, r.Scan(&one.name, &one.session, &one.head)
			}, list, last, prefix, page)
			if err != nil {
				yield(store.Head{}, s.unavailable(err, "listing the sessions of %s", s.name))
				return
			}
			for _, r := range rows {
				if !yield(decode(r.name, r.session, r.head)) {
					return
				}
				last = r.session
			}
			more = len(rows) == page
		}
	}
}

// Chunks implements [store.Store].
func (s *Store) Chunks(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
	list := `SELECT name, octet_length(data), put FROM ` + s.schema + `.chunks WHERE name > $1 AND name >= $2 AND name < $2 || chr(127) ORDER BY name LIMIT $3` // no character of a name sorts after ~
	return func(yield func(store.ChunkInfo, error) bool) {
		for last, more := "", true; more; {
			rows, err := collect(ctx, s, func(r pgx.CollectableRow) (c store.ChunkInfo, err error) {
				return c, r.Scan(&c.Name, &c.Size, &c.Put)
			}, list, last, prefix, page)
			if err != nil {
				yield(store.ChunkInfo{}, s.unavailable(err, "listing the chunks of %s", s.name))
				return
			}
			for _, c := range rows {
				if !yield(c, nil) {
					return
				}
				last = c.Name
			}
			more = len(rows) == page
		}
	}
}

func collect[T any](ctx context.Context, s *Store, read pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, err := s.pool.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, read)
}
