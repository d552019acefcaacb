package console_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
)

// pseudoTerminal returns the end at which a person types, and the terminal.
func pseudoTerminal(t *testing.T) (person, terminal *os.File) {
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = person.Close(), terminal.Close() })
	return person, terminal
}

// typist types a line at each prompt.
type typist struct {
	keyboard io.Writer
	lines    []string
}

func (p *typist) Write(b []byte) (int, error) {
	if strings.HasSuffix(string(b), "\n") || len(p.lines) == 0 {
		return len(b), nil
	}
	line := p.lines[0]
	p.lines = p.lines[1:]
	_, err := io.WriteString(p.keyboard, line)
	return len(b), err
}

// What somebody has typed when a request goes away answers no other request.
func TestAHalfTypedAnswerIsForItsRequest(t *testing.T) {
	person, terminal := pseudoTerminal(t)
	p := &typist{person, []string{"y"}}
	c := console.NewConsole(terminal, p, nil)
	q := agent.Request{ID: "q-1", Type: agent.RequestApproval, Call: &agent.RequestCall{Tool: "pay"}}
	gone, decided := context.WithCancel(t.Context())
	decided() // by somebody else
	_, err := c.Ask(gone, q)
	require.ErrorIs(t, err, context.Canceled)
	p.lines = []string{"\n"}
	q.ID = "q-2"
	_, err = c.Ask(t.Context(), q)
	require.ErrorIs(t, err, console.ErrLater, "Enter alone")
}
