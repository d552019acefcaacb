package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	maxMessage = 16 << 20 // bytes of one message of a server
	// maxValues bounds the values in a message. In memory each takes several hundred
	// bytes, however short it is written: 16 MiB of {} would take 3 GB.
	maxValues = 200_000
	// maxLevels is how deeply a message may be nested for the SDK to read it.
	maxLevels = 1000
	// writeTime is how long a server may leave one of our messages unread.
	writeTime = 10 * time.Second
)

var (
	errTooLarge = fmt.Errorf("it sent a message of more than %d bytes", maxMessage)
	errTooMany  = fmt.Errorf("it sent a message of more than %d values", maxValues)
	errTooDeep  = fmt.Errorf("it sent a message that is nested more than %d levels deep", maxLevels)
	errUnread   = fmt.Errorf("it did not read its input for %s", writeTime)
	errHungUp   = errors.New("the connection is closed")
)

// tooMuch reports whether an error is about a message that exceeds our bounds.
func tooMuch(err error) bool {
	return errors.Is(err, errTooLarge) || errors.Is(err, errTooMany) || errors.Is(err, errTooDeep)
}

// conn is a connection over a process's input and output, one message a line. The SDK's
// own connection has no bound on writing. It also ends at the first line that some
// library of the server prints to standard output.
type conn struct {
	in  *os.File // the server's standard input
	out *os.File // its standard output
	log *slog.Logger
	// logLimiter bounds how many lines that are no message are logged.
	logLimiter logLimiter

	reader *bufio.Reader
	queue  []json.RawMessage // the rest of a batch
	turn   chan struct{}     // a lock that a context can stop waiting for; the writer holds it

	mu     sync.Mutex
	reason error // why the connection broke
	close  sync.Once
}

func newConn(in, out *os.File, log *slog.Logger) *conn {
	return &conn{in: in, out: out, log: log, logLimiter: logLimiter{log: log}, reader: bufio.NewReaderSize(out, 64<<10), turn: make(chan struct{}, 1)}
}

// Connect makes the connection its own transport.
func (c *conn) Connect(context.Context) (sdk.Connection, error) { return c, nil }

// SessionID returns nothing: this transport has no sessions.
func (c *conn) SessionID() string { return "" }

// Read returns the next message. It skips lines that are none.
func (c *conn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		raw, err := c.next()
		if err != nil {
			return nil, c.breakOff(err)
		}
		msg, err := jsonrpc.DecodeMessage(exact(raw))
		if err == nil {
			return msg, nil
		}
		if rawjson.Depth(raw) > maxLevels {
			// It may be an answer that a call waits for. Skipping it would let that call
			// hang.
			return nil, c.breakOff(errTooDeep)
		}
		if !c.logLimiter.allows() {
			continue
		}
		c.log.Warn("MCP server wrote a line that is no message", "line", cut(string(raw), maxShown), "error", err)
	}
}

func (c *conn) next() (json.RawMessage, error) {
	for len(c.queue) == 0 {
		line, err := c.line()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		// Before any of it is decoded: decoding is what takes the memory.
		if crowded(line) {
			return nil, errTooMany
		}
		if line[0] != '[' || json.Unmarshal(line, &c.queue) != nil {
			return line, nil
		}
	}
	raw := c.queue[0]
	c.queue = c.queue[1:]
	return raw, nil
}

// line reads a line of any length up to maxMessage.
func (c *conn) line() ([]byte, error) {
	var line []byte
	for {
		piece, err := c.reader.ReadSlice('\n')
		if len(line)+len(piece) > maxMessage {
			return nil, errTooLarge
		}
		line = append(line, piece...)
		switch {
		case err == nil:
			return line, nil
		// The last line of a server that ended may lack its newline.
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) > 0:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// Write sends a message. If the server leaves it unread for [writeTime], the connection
// breaks: half a message can't be taken back.
func (c *conn) Write(ctx context.Context, msg jsonrpc.Message) error {
	// Encoded before the turn: an invalid message must not hold up the others.
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.broken(); err != nil {
		return err
	}
	// The select above picks at random if both are ready.
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// On a system without write deadlines only Close ends this write.
	c.in.SetWriteDeadline(time.Now().Add(writeTime))
	_, err = c.in.Write(append(data, '\n'))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errUnread
	}
	if err != nil {
		return c.breakOff(err)
	}
	return nil
}

// breakOff records why the connection broke, and closes it. Only the first reason is
// kept.
func (c *conn) breakOff(err error) error {
	c.mu.Lock()
	if c.reason == nil {
		c.reason = err
	}
	c.mu.Unlock()
	c.Close()
	return err
}

// broken returns why the connection broke, or nil while it works.
func (c *conn) broken() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// Close ends the connection. A server process ends when its input does. A second call
// does nothing.
func (c *conn) Close() error {
	c.close.Do(func() {
		c.mu.Lock()
		if c.reason == nil {
			c.reason = errHungUp
		}
		c.mu.Unlock()
		c.in.Close()
		c.out.Close()
	})
	return nil
}
