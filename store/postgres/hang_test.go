package postgres_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store/postgres"
)

// between stands before the tests' server, at the socket that its URL names. While it hangs,
// it lets connections be made, and their first statement has no answer, as a pooler does
// whose database is away.
func between(t *testing.T) (at string, hangs *atomic.Bool) {
	config, err := pgx.ParseConfig(database(t))
	require.NoError(t, err)
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.1"))
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	hangs = &atomic.Bool{}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go carry(c, fmt.Sprintf("%s/.s.PGSQL.%d", config.Host, config.Port), hangs.Load())
		}
	}()
	query := url.Values{"host": {dir}, "port": {"1"}, "connect_timeout": {"1"}}
	return (&url.URL{Scheme: "postgres", User: url.User(config.User), Path: "/" + config.Database, RawQuery: query.Encode()}).String(), hangs
}

func carry(c net.Conn, to string, hangs bool) {
	defer c.Close()
	s, err := net.Dial("unix", to)
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(c, s)
		c.Close()
	}()
	defer s.Close()
	for buf := make([]byte, 4096); ; {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if hangs && (buf[0] == 'Q' || buf[0] == 'P') { // a statement
			_, _ = io.Copy(io.Discard, c)
			return
		}
		if _, err := s.Write(buf[:n]); err != nil {
			return
		}
	}
}

// A database that hung for a moment is used again: no place of the pool is lost to it.
func TestADatabaseThatHungIsUsedAgain(t *testing.T) {
	named := schema(t)
	at, hangs := between(t)
	hangs.Store(true)
	s, err := postgres.New(at, &postgres.Options{Schema: named})
	require.NoError(t, err)
	defer s.Close()
	for range 12 { // more than the pool has places
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err = s.Head(ctx, "trip")
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	hangs.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err = s.Head(ctx, "trip")
	require.ErrorIs(t, err, agent.CodeNotFound)
}
