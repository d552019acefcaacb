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
	// openTime is how long a call waits for the stream to be open: what a server says on
	// one that is not there is lost. Some servers send no header before they say
	// something, so it is short, and waited for once.
	openTime = time.Second
	// lingering is how long the stream stays when no call runs any more: the next one
	// often follows.
	lingering = 2 * time.Second
	// minPause and maxPause are how long a stream that broke off is left.
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// stream is what a server says outside of its answers: requests that belong to no call
// as far as the transport knows. The SDK gives up a session whose stream breaks off
// often, and holds it for as long as the session. So the SDK reads from a pipe, and the
// stream that feeds it is opened while calls run.
type stream struct {
	client *http.Client
	into   *io.PipeWriter

	mu     sync.Mutex
	like   *http.Request // what the SDK would open it with; nil before
	calls  int           // that run
	none   bool          // the server has no such stream
	slow   bool          // it was not open in time
	opened chan struct{} // closed when it is open, or known not to be; nil if none runs
	cancel context.CancelFunc
	last   string // the id of the last event
}

// directly marks a request that opens the stream itself.
type directly struct{}

// answer takes the request that the SDK would open the stream with, and answers it.
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

// attend opens the stream for a call, or has it stay; done tells that the call is over.
func (s *stream) attend(ctx context.Context) (done func()) {
	s.mu.Lock()
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

// rest closes the stream where no call runs.
func (s *stream) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == 0 && s.opened != nil {
		s.cancel()
		s.opened = nil
	}
}

// run holds the stream open until its context ends.
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
				pause = minPause
			}
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
	if last != "" {
		req.Header.Set("Last-Event-Id", last)
	}
	return s.client.Do(req)
}

func eventStream(resp *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind == "text/event-stream"
}

// copy hands on the messages of a stream, each whole, until it ends. It reports whether
// there was one. What is no message is left out: the SDK would give up the session.
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
