package e2e

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"

	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/keyring"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/store/postgres"
)

// The tests run on a server in this process, with transcripts in folders, and nothing
// is encrypted. With these variables they run on another server, whose namespace is set
// up, with transcripts in a PostgreSQL database, and with keys: all that holds
// here holds there. The program cluster has them all.
const (
	addressVariable = "FERMATA_E2E_ADDRESS"
	storeVariable   = "FERMATA_E2E_STORE"
	keysVariable    = "FERMATA_ENCRYPTION_KEYS"
)

// place is a Temporal server.
type place interface {
	Addr() string
	Dial(ctx context.Context, o temporal.Options) (temporal.Client, error)
}

// shared is the server that the tests share.
func shared(t *testing.T) place {
	t.Helper()
	if addr := os.Getenv(addressVariable); addr != "" {
		return remote(addr)
	}
	return devserver.ForPackage(t)
}

// remote is the address of a server that is there already.
type remote string

func (r remote) Addr() string { return string(r) }

func (r remote) Dial(ctx context.Context, o temporal.Options) (temporal.Client, error) {
	o.HostPort = string(r)
	return temporal.DialContext(ctx, o)
}

// ring has the keys of the environment; nil if there are none.
func ring() *keyring.Ring {
	r, err := keyring.Parse(os.Getenv(keysVariable))
	if err != nil {
		panic(err)
	}
	return r
}

// connection is what a client of a server is made with.
func connection(words slog.Handler) temporal.Options {
	o := temporal.Options{Logger: log.NewStructuredLogger(slog.New(words))}
	if err := client.Prepare(&o, &client.PrepareOptions{Keyring: ring()}); err != nil {
		panic(err)
	}
	return o
}

// dial makes a client for the time of a test.
func dial(t *testing.T, p place) temporal.Client {
	t.Helper()
	c, err := p.Dial(t.Context(), connection(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// openStore opens the store of a folder, there or in the database, and says what
// closes it.
func openStore(dir string) (st store.Store, done func(), err error) {
	if url := os.Getenv(storeVariable); url != "" {
		schema := fmt.Sprintf("e2e_%x", sha256.Sum256([]byte(dir)))[:40]
		database, err := postgres.Open(context.Background(), url, &postgres.Options{Schema: schema})
		if err != nil {
			return nil, nil, err
		}
		return store.Encrypt(database, ring()), database.Close, nil
	}
	d, err := store.OpenDir(filepath.Join(dir, "store"), nil)
	return store.Encrypt(d, ring()), func() {}, err
}

// stored opens the store of a folder for the time of a test.
func stored(t *testing.T, dir string) store.Store {
	t.Helper()
	st, done, err := openStore(dir)
	require.NoError(t, err)
	t.Cleanup(done)
	return st
}

// codecFlags are those that the temporal command needs where payloads are encrypted.
func codecFlags(t *testing.T) []string {
	t.Helper()
	r := ring()
	if r == nil {
		return nil
	}
	s := httptest.NewServer(converter.NewPayloadCodecHTTPHandler(client.Codec(r)))
	t.Cleanup(s.Close)
	return []string{"--codec-endpoint", s.URL}
}

// plain does without keys in a test that is of payloads which are not encrypted.
func plain(t *testing.T) {
	t.Helper()
	t.Setenv(keysVariable, "")
}
