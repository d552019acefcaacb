package console_test

import (
	"context"
	"fmt"
	"io"
	"os"
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

// What somebody has typed when a request goes away answers no other request.
func TestAHalfTypedAnswerIsForItsRequest(t *testing.T) {
	person, terminal := pseudoTerminal(t)
	c := console.NewConsole(terminal, io.Discard, nil)
	q := agent.Request{ID: "q-1", Type: agent.RequestApproval, Call: &agent.RequestCall{Tool: "pay"}}
	gone, decided := context.WithCancel(t.Context())
	typed := func(text string) {
		_, err := person.WriteString(text)
		require.NoError(t, err)
	}
	typed("y")
	decided() // by somebody else
	_, err := c.Ask(gone, q)
	require.ErrorIs(t, err, context.Canceled)
	typed("n\nno need\n")
	q.ID = "q-2"
	a, err := c.Ask(t.Context(), q)
	require.NoError(t, err)
	require.Nil(t, a.Approve)
	require.Equal(t, "no need", a.Reject.Reason)
}
