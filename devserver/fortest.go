package devserver

import (
	"log/slog"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

// ForTest returns a server in memory for one test. It stops when the test ends, after the
// cleanups that the test registers later. If it does not start, the test fails. Like
// [Main], it sets the SDK's name of the test binary.
func ForTest(t testing.TB) *Server {
	t.Helper()
	worker.SetBinaryChecksum("test")
	s, err := Start(t.Context(), &Options{InMemory: true, Nexus: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Client returns a client for the time of a test, without the SDK's log. If the server
// can't be reached, the test fails.
func (s *Server) Client(t testing.TB) client.Client {
	t.Helper()
	c, err := s.Dial(t.Context(), client.Options{Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ofPackage is the server that the tests of a package share. A test binary is one
// package, so one is enough.
var ofPackage struct {
	sync.Mutex
	running bool // set by Main, which will stop the server
	server  *Server
}

// Main runs a package's tests and stops the server that they share, if one of them called
// [ForPackage]. Call it from TestMain:
//
//	func TestMain(m *testing.M) { devserver.Main(m) }
//
// It also sets the SDK's name of the test binary. Otherwise the SDK hashes the whole
// file; see [Start].
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
	// m keeps the exit code, which is used when TestMain returns.
	m.Run()
}

// ForPackage returns a server in memory that all tests of a package share. The first
// caller starts it. Tests use different task queues and workflow ids. It needs [Main] in
// the package's TestMain, and fails the test without it, because nothing would stop the
// server.
func ForPackage(t testing.TB) *Server {
	t.Helper()
	ofPackage.Lock()
	defer ofPackage.Unlock()
	if !ofPackage.running {
		t.Fatal("devserver: ForPackage needs func TestMain(m *testing.M) { devserver.Main(m) }")
	}
	if ofPackage.server == nil {
		s, err := Start(t.Context(), &Options{InMemory: true, Nexus: true})
		if err != nil {
			t.Fatal(err)
		}
		ofPackage.server = s
	}
	return ofPackage.server
}
