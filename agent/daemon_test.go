package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A daemon that can't be meant is refused with the field.
func TestDaemonsThatCantBeMeant(t *testing.T) {
	many := strings.Split("a b c d e f g h i", " ")
	for path, d := range map[string]Definition{
		"daemon.every": {Daemon: &Daemon{Every: Duration(time.Second)}}, "daemon.queue": {Daemon: &Daemon{Queue: -1}},
		"daemon.watchdog": {Daemon: &Daemon{Watchdog: 2}}, "daemon.topics": {Daemon: &Daemon{Topics: many}},
		"daemon.topics[1]": {Daemon: &Daemon{Topics: []string{"a", "b c"}}}, "daemon.topics[2]": {Daemon: &Daemon{Topics: []string{"a", "b", "a"}}},
		"daemon.watch_every": {Daemon: &Daemon{Watch: []string{"a"}, WatchEvery: Duration(time.Second)}}, "daemon.watch": {Daemon: &Daemon{Watch: many}},
		"daemon.watch[0]": {Daemon: &Daemon{Watch: []string{"../a"}}}, "daemon.watch[1]": {Daemon: &Daemon{Watch: []string{"a", "/etc"}}},
		"daemon.watch[2]": {Daemon: &Daemon{Watch: []string{"a", "b", "a"}}}, "daemon.watch[3]": {Daemon: &Daemon{Watch: []string{"a", "b", "c", strings.Repeat("a", 257)}}},
		"daemon.watch[4]": {Daemon: &Daemon{Watch: []string{"a", "b", "c", "d", "a\nb"}}}, "daemon.watch[5]": {Daemon: &Daemon{Watch: []string{"a", "b", "c", "d", "e", ""}}},
		"require": {Daemon: &Daemon{}, Require: []OneOf{{"pay"}}},
	} {
		d.Name, d.Model = "a", "m"
		err := d.Check()
		require.ErrorIs(t, err, CodeInvalidInput, path)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, path, e.Path)
	}
	require.ErrorContains(t, (&Daemon{Queue: 1001}).Check(), "1 to 1000")
	require.ErrorContains(t, (&Daemon{Every: -1}).Check(), "at least 2s")
	require.ErrorContains(t, (&Daemon{Watch: []string{}}).Check(), "daemon.watch is empty")
	require.ErrorContains(t, (&Daemon{WatchEvery: Duration(time.Minute)}).Check(), "name some there, or leave it out")
	require.ErrorContains(t, (&Daemon{Every: Duration(time.Hour), Watchdog: -1}).Check(), "positive")
}

// The zero daemon is one that can be meant; no daemon stays none.
func TestDaemonDefaults(t *testing.T) {
	d := Definition{Name: "a", Model: "m", Daemon: &Daemon{}}
	require.NoError(t, d.Check())
	require.Equal(t, 256, d.WithDefaults().Daemon.Queue)
	require.Zero(t, d.Daemon.Queue, "the author's own is left as it is")
	require.Zero(t, d.WithDefaults().Daemon.WatchEvery)
	d.Daemon.Watch = []string{".", "docs/todo.md"}
	require.NoError(t, d.Check())
	require.Equal(t, Duration(30*time.Second), d.WithDefaults().Daemon.WatchEvery)
	require.Nil(t, Definition{}.WithDefaults().Daemon)
	require.True(t, CodeQueueFull.Retryable())
}
