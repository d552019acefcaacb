package devserver

import (
	"log/slog"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

// ForTest returns a server in memory that is the test's own. It stops when the
// test ends, after the cleanups that the test has registered since. A server that
// does not start fails the test. Like [Main] it names the test binary's build.
func ForTest(t testing.TB) *Server {
	t.Helper()
	worker.SetBinaryChecksum("test")
	s, err := Start(t.Context(), &Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Client returns a client for the time of a test, with the SDK's own log left out.
// A server that can't be reached fails the test.
func (s *Server) Client(t testing.TB) client.Client {
	t.Helper()
	c, err := s.Dial(t.Context(), client.Options{Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ofPackage is the server that a package's tests share. A test binary is one
// package, so one is enough.
var ofPackage struct {
	sync.Mutex
	running bool // Main is running: somebody will stop it
	server  *Server
}

// Main runs a package's tests and stops the server that they share, if any of
// them asked for one with [ForPackage]. It is for TestMain:
//
//	func TestMain(m *testing.M) { devserver.Main(m) }
//
// It also names the test binary's build for the SDK, which would hash the whole
// file otherwise; see [Start].
func Main(m *testing.M) {
	worker.SetBinaryChecksum("test")
	ofPackage.Lock()
	ofPackage.running = true
	ofPackage.Unlock()
	defer func() {
		ofPackage.Lock()
		defer ofPackage.Unlock()
		ofPackage.running = false
		if ofPackage.server != nil {
			ofPackage.server.Stop()
			ofPackage.server = nil
		}
	}()
	// The exit code is kept in m and used when TestMain returns.
	m.Run()
}

// ForPackage returns a server in memory that all tests of a package share; the
// first one to ask starts it. Tests keep apart by the names of their task queues
// and the ids of their workflows. It needs [Main] in the package's TestMain, and
// fails the test without it, since nobody would stop the server.
func ForPackage(t testing.TB) *Server {
	t.Helper()
	ofPackage.Lock()
	defer ofPackage.Unlock()
	if !ofPackage.running {
		t.Fatal("devserver: ForPackage needs func TestMain(m *testing.M) { devserver.Main(m) }")
	}
	if ofPackage.server == nil {
		s, err := Start(t.Context(), &Options{InMemory: true})
		if err != nil {
			t.Fatal(err)
		}
		ofPackage.server = s
	}
	return ofPackage.server
}
