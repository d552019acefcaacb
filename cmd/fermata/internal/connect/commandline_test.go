package connect

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A command that is printed for somebody to type goes where this one went. A URL of a store,
// which may have a password, is left to the environment.
func TestCommandsToTypeNameWhereTheyGo(t *testing.T) {
	c := &Connector{}
	c.Address, c.Namespace, c.TaskQueue, c.Data, c.Store = "a:1", "n", "team a", "/d", "/s"
	require.Equal(t, "fermata attach s-1 --address a:1 --namespace n --task-queue 'team a' --data /d --store /s", c.CommandLine("attach %s", "s-1"))
	c = &Connector{}
	c.Store = "postgres://me:hunter2@host/db"
	require.Equal(t, "fermata attach s-1", c.CommandLine("attach %s", "s-1"))
}
