package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// openTime is how long a call waits for the stream to open: what a server says before
	// is lost. Some servers send no header before their first message, so the time is
	// short, and waited for only once.
	openTime = time.Second
	// lingering is how long the stream stays open after the last call: the next call
	// often follows.
	lingering = 2 * time.Second
	// minPause and maxPause bound the pause before a broken stream is opened again.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// stream carries what a server says outside of its answers: requests that the transport
// can't assign to a call. The SDK keeps this stream open for the whole session, and ends
// a session whose stream breaks off often. So the SDK reads from a pipe, and the stream
// that feeds the pipe is open only while calls run.
type stream struct {
	client *http.Client
	into   *io.PipeWriter

	mu     sync.Mutex
	like   *http.Request // the SDK's request to open it; nil before
	calls  int           // how many run
	none   bool          // the server has no such stream
	slow   bool          // it was not open in time
	opened chan struct{} // closed when it is open or can't be opened; nil if it is not running
	cancel context.CancelFunc
	last   string // the id of the last event
}

// directly marks a request that opens the real stream.
type directly struct{}

// answer answers the SDK's request to open the stream with the pipe.
func (s *stream) answer(req *http.Request) *http.Response {
	out, in := io.Pipe()
	s.mu.Lock()
	s.like, s.into = req, in
	s.mu.Unlock()
	context.AfterFunc(req.Context(), func() { in.CloseWithError(context.Cause(req.Context())) })
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: out, ContentLength: -1,
	}
}

// attend opens the stream for a call, or keeps it open. The caller calls done after the
// call.
func (s *stream) attend(ctx context.Context) (done func()) {
	s.mu.Lock()
	// No stream: the SDK has not asked for it yet, the server has none, or the session is
	// over.
	if s.like == nil || s.none || s.like.Context().Err() != nil {
		s.mu.Unlock()
		return func() {}
	}
	s.calls++
	if s.opened == nil {
		running, cancel := context.WithCancel(s.like.Context())
		s.opened, s.cancel = make(chan struct{}), cancel
		go s.run(running, s.opened)
	}
	opened, slow := s.opened, s.slow
	s.mu.Unlock()
	if !slow {
		timer := time.NewTimer(openTime)
		defer timer.Stop()
		select {
		case <-opened:
		case <-ctx.Done():
		case <-timer.C:
			s.mu.Lock()
			s.slow = true
			s.mu.Unlock()
		}
	}
	return s.leave
}

func (s *stream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls--; s.calls == 0 {
		time.AfterFunc(lingering, s.rest)
	}
}

// rest closes the stream if no call runs.
func (s *stream) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == 0 && s.opened != nil {
		s.cancel()
		s.opened = nil
	}
}

// run keeps the stream open until its context ends.
func (s *stream) run(ctx context.Context, opened chan struct{}) {
	known := sync.OnceFunc(func() { close(opened) })
	defer known()
	for pause := minPause; ctx.Err() == nil; pause = min(2*pause, maxPause) {
		resp, err := s.open(ctx)
		switch {
		case err != nil:
		case resp.StatusCode == http.StatusOK && eventStream(resp):
			known()
			if s.copy(resp.Body) {
				// A stream that carried something works; count its failures from zero.
				pause = minPause
			}
		// Any other refusal is final: the server has no such stream. Calls stop waiting
		// for it.
		case resp.StatusCode < 500 && resp.StatusCode != http.StatusConflict && resp.StatusCode != http.StatusTooManyRequests:
			resp.Body.Close()
			s.mu.Lock()
			s.none = true
			s.mu.Unlock()
			return
		}
		if err == nil {
			resp.Body.Close()
		}
		// Calls wait for known only at first; after one failed try they continue without the
		// stream.
		known()
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (s *stream) open(ctx context.Context) (*http.Response, error) {
	s.mu.Lock()
	req, last := s.like.Clone(context.WithValue(ctx, directly{}, true)), s.last
	s.mu.Unlock()
	// The server may then send what was missed.
	if last != "" {
		req.Header.Set("Last-Event-Id", last)
	}
	return s.client.Do(req)
}

func eventStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// copy passes on the whole messages of a stream until it ends. It reports whether there
// was one. It drops what is no message: for that the SDK would end the session.
func (s *stream) copy(body io.Reader) (any bool) {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 4<<10), maxMessage)
	var data bytes.Buffer
	id := ""
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch {
		case len(lines.Bytes()) == 0:
			if s.pass(data.Bytes(), id) {
				any = true
			}
			data.Reset()
		case string(name) == "data" && data.Len()+len(value) < maxMessage:
			data.Write(value)
			data.WriteByte('\n')
		case string(name) == "data":
			return any
		case string(name) == "id":
			id = string(value)
		}
	}
	return any
}

func (s *stream) pass(data []byte, id string) bool {
	var line bytes.Buffer
	line.WriteString("data: ")
	if crowded(data) {
		return false
	}
	if _, err := jsonrpc.DecodeMessage(data); err != nil || json.Compact(&line, data) != nil {
		return false
	}
	line.WriteString("\n\n")
	s.mu.Lock()
	s.last = id
	into := s.into
	s.mu.Unlock()
	_, err := into.Write(line.Bytes())
	return !errors.Is(err, io.ErrClosedPipe)
}
