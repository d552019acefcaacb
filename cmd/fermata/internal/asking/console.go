package asking

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// ErrPressed tells that Ctrl-C was pressed in the place of an answer.
var ErrPressed = errors.New("Ctrl-C was pressed")

// Console is a terminal with a person at it. It is used by one goroutine.
type Console struct {
	in      io.Reader
	out     io.Writer
	pressed <-chan struct{}
	reading sync.Once

	mu     sync.Mutex
	asking chan string // has room for one; nil while nothing is asked
	ended  bool        // the input is at its end
}

// NewConsole returns a console that reads lines from in and writes to out. Who
// presses Ctrl-C is heard from pressed, which may be nil.
func NewConsole(in io.Reader, out io.Writer, pressed <-chan struct{}) *Console {
	return &Console{in: in, out: out, pressed: pressed}
}

// Print writes a line.
func (c *Console) Print(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }

// Line asks for a line, without the blanks around it. What was typed before the
// question is dropped: it is no answer to it. Errors are [ErrPressed], [io.EOF]
// where the input has ended, and the context's.
func (c *Console) Line(ctx context.Context, prompt string) (string, error) {
	c.reading.Do(func() { go c.read() })
	answer := make(chan string, 1)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return "", io.EOF
	}
	c.asking = answer
	c.mu.Unlock()
	defer c.drop()
	fmt.Fprint(c.out, prompt)
	select {
	case line, more := <-answer:
		if !more {
			c.Print("")
			return "", io.EOF
		}
		return strings.TrimSpace(line), nil
	case <-c.pressed:
		c.Print("")
		return "", ErrPressed
	case <-ctx.Done():
		c.Print("")
		return "", ctx.Err()
	}
}

// drop lets go of a question that waits no longer.
func (c *Console) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = nil
}

// read hands each line to whoever asks at the moment. It ends with the input.
func (c *Console) read() {
	lines := bufio.NewReader(c.in)
	for {
		line, err := lines.ReadString('\n')
		c.mu.Lock()
		if c.asking != nil && (err == nil || line != "") {
			c.asking <- line
			c.asking = nil
		}
		if err != nil {
			c.ended = true
			if c.asking != nil {
				close(c.asking)
				c.asking = nil
			}
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}
