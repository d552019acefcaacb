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

// ErrInterrupted means that the person pressed Ctrl-C instead of answering.
var ErrInterrupted = errors.New("Ctrl-C was pressed")

// ErrNothing means that nothing was typed.
var ErrNothing = errors.New("nothing was typed")

// Command is a line with a slash that was typed instead of an answer. Only a console that
// buffers lines returns it.
type Command string

func (c Command) Error() string { return "a command was typed: " + string(c) }

// Console is a terminal with a person. One goroutine uses it.
type Console struct {
	in      io.Reader
	out     io.Writer
	pressed <-chan struct{}
	reading sync.Once
	kept    chan string   // lines that nobody asked for; nil if these are dropped
	ahead   bool          // buffered lines answer the next question
	typed   chan struct{} // has room for one: something was buffered

	mu     sync.Mutex
	asking chan string // has room for one; nil while nothing is asked
	ended  bool        // the input has ended
}

// NewConsole returns a console that reads lines from in and writes to out. pressed
// receives Ctrl-C, and may be nil.
func NewConsole(in io.Reader, out io.Writer, pressed <-chan struct{}) *Console {
	return &Console{in: in, out: out, pressed: pressed}
}

// SetInterrupt replaces the channel that receives Ctrl-C.
func (c *Console) SetInterrupt(pressed <-chan struct{}) { c.pressed = pressed }

// maxKept bounds the buffered lines; a person who types more waits.
const maxKept = 64

// Buffer makes the console buffer what a person types while it asks nothing, for [Console.Typed].
// It also makes it recognise [Command]. The channel receives when there is something, or when the
// input has ended. With ahead, buffered lines answer the next question, as lines of a script do.
// Call it before the first question.
func (c *Console) Buffer(ahead bool) <-chan struct{} {
	c.kept, c.ahead, c.typed = make(chan string, maxKept), ahead, make(chan struct{}, 1)
	c.reading.Do(func() { go c.read() })
	return c.typed
}

// Typed returns the next buffered line. The error is [ErrNothing] if there is none,
// [io.EOF] at the end of the input, and a [Command] for a line with a slash.
func (c *Console) Typed() (string, error) {
	select {
	case line, more := <-c.kept:
		return c.parseTyped(line, more)
	default:
		return "", ErrNothing
	}
}

// Print writes a line. No argument but an [untrusted.Block] can add another line.
func (c *Console) Print(format string, args ...any) {
	fmt.Fprintln(c.out, untrusted.Sprintf(format, args...))
}

// Line asks for a line, without the blanks around it. What was typed before the question
// does not answer it, and neither does a line that was half typed when an earlier question went away. Errors
// are [ErrInterrupted], [Command], [io.EOF] at the end of the
// input, and the context's.
func (c *Console) Line(ctx context.Context, prompt string) (string, error) {
	// Reading starts with the first question: a command that asks nothing must leave the input
	// alone.
	c.reading.Do(func() { go c.read() })
	answer := c.kept
	if !c.ahead {
		if answer = c.ask(); answer == nil {
			return "", io.EOF
		}
		// A line that comes after an interrupt must not answer the next question.
		defer c.drop()
	}
	fmt.Fprint(c.out, prompt)
	select {
	case line, more := <-answer:
		if !more && !c.ahead {
			c.Print("")
		}
		return c.parseTyped(line, more)
	case <-c.pressed:
		c.Print("")
		return "", ErrInterrupted
	case <-ctx.Done():
		discard(c.in)
		c.Print("")
		return "", ctx.Err()
	}
}

// parseTyped returns a typed line. It removes the first of two slashes, and returns a [Command] for one.
// Blanks around an answer are never meant.
func (c *Console) parseTyped(line string, more bool) (string, error) {
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

// drop closes a question that nobody waits for.
func (c *Console) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = nil
}

// terminal is an output that also shows what is typed.
type terminal interface{ Typed() }

// read passes each line to the open question. It ends with the input.
func (c *Console) read() {
	lines := bufio.NewReader(c.in)
	for {
		line, err := lines.ReadString('\n')
		if err == nil || line != "" {
			// The typed line break moved the cursor, which the output must know.
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
	// One line answers one question. The channel has room for one, so this never blocks.
	c.asking = nil
	c.mu.Unlock()
	switch {
	case asking != nil:
		asking <- line
	// Sent outside of the lock: a full buffer blocks here until the person's lines are read.
	case c.kept != nil:
		c.kept <- line
		c.tell()
	}
}

func (c *Console) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	// Closing is how a waiting question learns of the end.
	if c.asking != nil {
		close(c.asking)
		c.asking = nil
	}
	if c.kept != nil {
		close(c.kept)
		c.tell()
	}
}

// tell says that something was buffered.
func (c *Console) tell() {
	// Never blocks: one waiting signal covers all buffered lines.
	select {
	case c.typed <- struct{}{}:
	default:
	}
}
