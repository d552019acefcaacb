package loopback

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/live"
)

const (
	// FileName is the file in the data directory that says where the endpoint is.
	FileName = "live.json"
	path     = "/v1/live"

	maxReaders = 256
	maxBody    = 16 << 20
	maxSession = 4 << 10
	// blocked is how long one write to a reader may take. A reader that was cut off
	// reconnects, and continues after the last event that it had.
	blocked = 10 * time.Second
)

// place is where an endpoint is, and for which Temporal server.
type place struct {
	Temporal string `json:"temporal"`
	Addr     string `json:"addr"`
	Token    string `json:"token"`
	// Certificate is how the endpoint authenticates itself. After a crash another process
	// may listen at its port, and must get neither the token nor texts.
	Certificate []byte `json:"certificate"`
}

// Server is the endpoint, and both ends of live events in its own process. It is safe for
// use by many goroutines at once.
type Server struct {
	turns   *turns
	place   place
	file    string
	http    *http.Server
	readers atomic.Int64
	done    context.Context
	end     context.CancelFunc
}

// Open opens the endpoint of a data directory. temporal is the address of its Temporal
// server. The caller must hold that directory's lock. Errors have [agent.CodeInternal].
func Open(dir, temporal string) (*Server, error) {
	// Port 0 takes a free port; the file tells clients which one.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "opening the endpoint of live events: %w", err)
	}
	key, err := certificate()
	if err != nil {
		return nil, errors.Join(agent.Errorf(agent.CodeInternal, "making the key of the endpoint of live events: %w", err), l.Close())
	}
	s := &Server{
		turns: newTurns(), file: filepath.Join(dir, FileName),
		place: place{Temporal: temporal, Addr: l.Addr().String(), Token: rand.Text(), Certificate: key.Certificate[0]},
	}
	s.done, s.end = context.WithCancel(context.Background())
	// Before Serve: early requests wait in the listener.
	if err := s.place.write(s.file); err != nil {
		return nil, errors.Join(agent.Errorf(agent.CodeInternal, "recording the endpoint of live events: %w", err), l.Close())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, s.serveEvents)
	mux.HandleFunc("POST "+path, s.takeEvents)
	// Its log would write to standard error about every client that goes away.
	s.http = &http.Server{Handler: s.allowed(mux), ReadHeaderTimeout: blocked, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		_ = s.http.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{key}, MinVersion: tls.VersionTLS13}))
	}()
	return s, nil
}

// write replaces the file atomically. It never writes into an existing file, which may
// have other permissions.
func (p place) write(file string) error {
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "live-*.json") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(raw, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Close closes the endpoint, and drops what it has. It may be called more than once.
func (s *Server) Close() {
	if s.done.Err() != nil {
		return
	}
	s.end()
	// Removed first, so no new client finds an endpoint that is closing.
	_ = os.Remove(s.file)
	_ = s.http.Close()
}

// Publish implements [live.Sink].
func (s *Server) Publish(e live.Event) { s.turns.put(e) }

// Subscribe implements [live.Source]. It delivers the open turn from its beginning.
func (s *Server) Subscribe(_ context.Context, session string) (*live.Subscription, error) {
	ctx, cancel := context.WithCancel(s.done)
	sub := live.NewSubscription(cancel)
	go func() {
		_ = s.turns.follow(ctx, session, 0, func(n numbered) error { sub.Put(n.Event); return nil })
	}()
	return sub, nil
}

// follow passes a session's events after a number to give, until the context ends or give
// returns an error.
func (t *turns) follow(ctx context.Context, session string, after int64, give func(numbered) error) error {
	t.enter(session)
	defer t.leave(session)
	for {
		list, changed := t.take(session, after)
		for _, n := range list {
			if err := give(n); err != nil {
				return err
			}
			after = n.Seq
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// allowed admits requests with the token.
func (s *Server) allowed(next http.Handler) http.Handler {
	want := []byte("Bearer " + s.place.Token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "the token is wrong", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveEvents sends a session's events, one a line, until the reader leaves.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	after, err := strconv.ParseInt(r.FormValue("after"), 10, 64)
	session := r.FormValue("session")
	if err == nil {
		err = checkSession(session)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if s.readers.Add(1) > maxReaders {
		s.readers.Add(-1)
		http.Error(w, fmt.Sprintf("there are %d readers already", maxReaders), http.StatusServiceUnavailable)
		return
	}
	// Counted down however the reader leaves.
	defer s.readers.Add(-1)
	w.Header().Set("Content-Type", "application/x-ndjson")
	out, lines := http.NewResponseController(w), json.NewEncoder(w)
	// The headers go out now: the reader must know that it is connected before the first
	// event.
	_ = out.Flush()
	_ = s.turns.follow(r.Context(), session, after, func(n numbered) error {
		// For each write: the stream itself has no time limit.
		if err := out.SetWriteDeadline(time.Now().Add(blocked)); err != nil {
			return err
		}
		if err := lines.Encode(n); err != nil {
			return err
		}
		return out.Flush()
	})
}

// checkSession bounds a session's name, which may be that of a sub-agent.
func checkSession(session string) error {
	if session == "" || len(session) > maxSession {
		return agent.Errorf(agent.CodeInvalidInput, "a session's name has 1 to %d bytes", maxSession)
	}
	return nil
}

// takeEvents takes the events of a worker in another process: all of them, or none.
func (s *Server) takeEvents(w http.ResponseWriter, r *http.Request) {
	// A sender that stalls must not hold its connection open.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(blocked))
	var list []live.Event
	lines := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	for {
		var e live.Event
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = checkSession(e.Session)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		list = append(list, e)
	}
	// Only now: a body that breaks off must not leave a part, because the client counts it as lost.
	for _, e := range list {
		s.turns.put(e)
	}
	w.WriteHeader(http.StatusNoContent)
}
