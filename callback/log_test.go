package callback

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/signals"
)

// The log says why a session is not there for a callback. The sender gets one answer for all of them.
func TestTheLogSaysWhyASessionIsNotThere(t *testing.T) {
	for says, change := range map[string]func(*fake){
		"session trip-42 is one of the task queue another-tenant, not of " + signals.TaskQueue: func(f *fake) { f.queue = "another-tenant" },
		"workflow trip-42 is a billing, not a run of fermata":                                  func(f *fake) { f.kind = "billing" },
		"no workflow trip-42": func(f *fake) { f.status.Session = "trip-43" },
	} {
		var text strings.Builder
		f := parked(agent.Conditions{Event: event("a")})
		change(f)
		d := opened(t, f, bearer(t))
		d.h.o.Logger = slog.New(slog.NewTextHandler(&text, nil))
		a := d.post("/callback/trip-42", "{}")
		d.Close()
		require.Equal(t, []any{404, agent.CodeNotFound, "there is no such session"}, []any{a.status, a.Code, a.Detail}, a.text)
		require.Contains(t, text.String(), says)
		require.Contains(t, text.String(), "code=not_found")
	}
}

// A stranger's request is one short line in the log.
func TestTheLogCutsAPath(t *testing.T) {
	var text strings.Builder
	d := opened(t, parked(agent.Conditions{Event: event("a")}), bearer(t))
	d.h.o.Logger = slog.New(slog.NewTextHandler(&text, nil))
	a := d.post("/callback/"+strings.Repeat("%ff", 5_000), "", with("Authorization", "Bearer wrong"))
	d.Close()
	require.Equal(t, agent.CodeDenied, a.Code, a.text)
	require.Contains(t, text.String(), "path=/callback/%ff")
	require.Less(t, text.Len(), 2*maxLogged)
}
