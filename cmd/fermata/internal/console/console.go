package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// ErrInterrupted means that Ctrl-C was pressed instead of an answer.
var ErrInterrupted = errors.New("Ctrl-C was pressed")

// ErrNothing means that nothing was typed.
var ErrNothing = errors.New("nothing was typed")

// Command is a line that was typed instead of an answer and is none, since it
// begins with a slash. It is only told apart by a console that keeps lines.
type Command string

func (c Command) Error() string { return "a command was typed: " + string(c) }

// Console is a terminal with a person at it. It is used by one goroutine.
type Console struct {
	in      io.Reader
	out     io.Writer
	pressed <-chan struct{}
	reading sync.Once
	kept    chan string   // what nobody has asked for; nil: that is dropped
	ahead   bool          // what is kept answers what is asked next
	typed   chan struct{} // has room for one: something was kept

	mu     sync.Mutex
	asking chan string // has room for one; nil while nothing is asked
	ended  bool        // the input is at its end
}

// NewConsole returns a console that reads lines from in and writes to out. Who
// presses Ctrl-C is heard from pressed, which may be nil.
func NewConsole(in io.Reader, out io.Writer, pressed <-chan struct{}) *Console {
	return &Console{in: in, out: out, pressed: pressed}
}

// SetInterrupt hears from now on from pressed who presses Ctrl-C.
func (c *Console) SetInterrupt(pressed <-chan struct{}) { c.pressed = pressed }

// maxKept bounds what is kept; who types more waits.
const maxKept = 64

// Buffer makes the console keep what is typed while nothing is asked, for
// [Console.Typed], and tell [Command] apart. The channel tells that there is
// something, or that the input has ended. With ahead what is kept answers what is
// asked next, as the lines of a script do. It is called before anything is asked.
func (c *Console) Buffer(ahead bool) <-chan struct{} {
	c.kept, c.ahead, c.typed = make(chan string, maxKept), ahead, make(chan struct{}, 1)
	c.reading.Do(func() { go c.read() })
	return c.typed
}

// Typed is the next line that was kept, else [ErrNothing], or [io.EOF] where the
// input has ended. One that begins with a slash is a [Command] error.
func (c *Console) Typed() (string, error) {
	select {
	case line, more := <-c.kept:
		return c.said(line, more)
	default:
		return "", ErrNothing
	}
}

// Print writes a line, to which no argument but an [untrusted.Block] can add another.
func (c *Console) Print(format string, args ...any) {
	fmt.Fprintln(c.out, untrusted.Sprintf(format, args...))
}

// Line asks for a line, without the blanks around it. What was typed before the
// question is no answer to it. Errors are [ErrInterrupted], [Command], [io.EOF]
// where the input has ended, and the context's.
func (c *Console) Line(ctx context.Context, prompt string) (string, error) {
	c.reading.Do(func() { go c.read() })
	answer := c.kept
	if !c.ahead {
		if answer = c.ask(); answer == nil {
			return "", io.EOF
		}
		defer c.drop()
	}
	fmt.Fprint(c.out, prompt)
	select {
	case line, more := <-answer:
		if !more && !c.ahead {
			c.Print("")
		}
		return c.said(line, more)
	case <-c.pressed:
		c.Print("")
		return "", ErrInterrupted
	case <-ctx.Done():
		c.Print("")
		return "", ctx.Err()
	}
}

// said is a line as it was meant: with a second slash the first is no sign.
func (c *Console) said(line string, more bool) (string, error) {
	line = strings.TrimSpace(line)
	switch {
	case !more:
		return "", io.EOF
	case c.kept == nil || !strings.HasPrefix(line, "/"):
		return line, nil
	case strings.HasPrefix(line, "//"):
		return line[1:], nil
	}
	return "", Command(line)
}

// ask opens a question for the next line; nil if none will come.
func (c *Console) ask() chan string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil
	}
	c.asking = make(chan string, 1)
	return c.asking
}

// drop lets go of a question that waits no longer.
func (c *Console) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = nil
}

// terminal is an output that shows what is typed, too.
type terminal interface{ Typed() }

// read hands each line to whoever asks at the moment. It ends with the input.
func (c *Console) read() {
	lines := bufio.NewReader(c.in)
	for {
		line, err := lines.ReadString('\n')
		if err == nil || line != "" {
			if t, ok := c.out.(terminal); ok {
				t.Typed()
			}
			c.take(line)
		}
		if err != nil {
			c.end()
			return
		}
	}
}

func (c *Console) take(line string) {
	c.mu.Lock()
	asking := c.asking
	c.asking = nil
	c.mu.Unlock()
	switch {
	case asking != nil:
		asking <- line
	case c.kept != nil:
		c.kept <- line
		c.tell()
	}
}

func (c *Console) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.asking != nil {
		close(c.asking)
		c.asking = nil
	}
	if c.kept != nil {
		close(c.kept)
		c.tell()
	}
}

// tell tells that something was kept.
func (c *Console) tell() {
	select {
	case c.typed <- struct{}{}:
	default:
	}
}
