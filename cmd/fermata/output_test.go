package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// full is a device on which nothing can be written.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// Output that is lost is not told to have been printed.
func TestLostOutputIsAnError(t *testing.T) {
	b := setup(t)
	project(b)
	require.Zero(t, b.run("run", "reader", "What do the notes say?", "--session", "s-1").exit)
	device, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { device.Close() })
	for _, args := range [][]string{
		{"version"}, {"transcript", "s-1"}, {"events", "s-1", "--json"}, {"run", "reader", "What do the notes say?", "--json"},
	} {
		cmd := b.command(args...)
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = device, &errs
		err := cmd.Run()
		require.Equal(t, agent.CodeNotWritten.ExitStatus(), cmd.ProcessState.ExitCode(), "%v: %v %s", args, err, &errs)
		require.Contains(t, errs.String(), "["+string(agent.CodeNotWritten)+"] standard output can't be written", args)
	}
	for _, args := range [][]string{{"--help"}, {"help", "run"}} {
		var errs bytes.Buffer
		require.Equal(t, 1, newCLI(strings.NewReader(""), full{}, &errs).execute(t.Context(), args))
	}
}

// A command that fails says so with its own status, and that its output is lost besides.
func TestLostOutputIsToldBesideAnError(t *testing.T) {
	var errs bytes.Buffer
	require.Equal(t, agent.CodeInvalidInput.ExitStatus(), newCLI(strings.NewReader(""), full{}, &errs).execute(t.Context(), []string{"version", "--json", "--nope"}))
	require.Contains(t, errs.String(), "["+string(agent.CodeInvalidInput)+"] unknown flag: --nope")
	require.Contains(t, errs.String(), "["+string(agent.CodeNotWritten)+"] standard output can't be written")
}

// A reader of ASCII is given nothing else, and JSON still says what was said.
func TestASCII(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	var out, errs bytes.Buffer
	c := newCLI(strings.NewReader(""), &out, &errs)
	c.Print("a → b · Grüße…")
	c.Note("mehr…")
	c.Line(map[string]string{"text": "Grüße… 🎼 \\u00fc"})
	require.Equal(t, "mehr...\n", errs.String())
	lines := strings.Split(out.String(), "\n")
	require.Equal(t, `a -> b - Gr\u00fc\u00dfe...`, lines[0])
	require.NotRegexp(t, `[^\x00-\x7f]`, lines[1])
	var back map[string]string
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &back))
	require.Equal(t, "Grüße… 🎼 \\u00fc", back["text"])

	t.Setenv("LC_ALL", "C.UTF-8")
	out.Reset()
	newCLI(strings.NewReader(""), &out, &errs).Print("a → b")
	require.Equal(t, "a → b\n", out.String())
}
