package connect

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/cmd/fermata/internal/logging"
	"github.com/fermata-agents/fermata/devserver"
)

// The server of fermata dev calls Nexus operations, as docs/temporal.md says.
func TestDevCallsNexusOperations(t *testing.T) {
	defer func(was func(context.Context, *devserver.Options) (*devserver.Server, error)) { StartServer = was }(StartServer)
	nexus := false
	StartServer = func(_ context.Context, o *devserver.Options) (*devserver.Server, error) {
		nexus = o.Nexus
		return nil, errors.New("not started")
	}
	c := &Connector{Log: &logging.Log{}, Notify: func(string, ...any) {}}
	c.Data = t.TempDir()
	_, err := c.StartDev(t.Context(), "")
	require.ErrorContains(t, err, "not started")
	require.True(t, nexus)
}
