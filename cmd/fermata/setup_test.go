package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/devserver"
)

func TestSetup(t *testing.T) {
	alone(t)
	s, err := devserver.Start(t.Context(), &devserver.Options{InMemory: true})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	c, err := s.Dial(t.Context(), client.Options{})
	require.NoError(t, err)
	defer c.Close()
	_, err = c.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: "bare", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)

	// A server takes a moment to know its new namespace.
	var check ran
	require.Eventually(t, func() bool {
		check = inProcess(t, "setup", "--check", "--address", s.Addr(), "--namespace", "bare")
		return !strings.Contains(check.err, "has no namespace")
	}, patience, 50*time.Millisecond)
	require.Equal(t, 5, check.exit, check.err)
	require.Contains(t, check.err, "[not_set_up] namespace bare lacks the search attributes FermataAgent, FermataStatus, FermataWaitsFor, FermataSince, FermataDeadline: run fermata setup")

	t.Chdir(t.TempDir())
	gone := inProcess(t, "doctor", "--address", s.Addr(), "--namespace", "nowhere")
	require.Equal(t, 5, gone.exit, gone.out)
	require.Contains(t, gone.out, "FAIL namespace   the server has no namespace \"nowhere\"")
	require.Equal(t, 1, strings.Count(gone.out, "FAIL"), "once: %s", gone.out)
	writeFile(t, "fermata.yaml", "agents: {a: {model: \"script:s.yaml\"}}\n")
	writeFile(t, "s.yaml", "replies: [{text: Hello.}]\n")
	r := inProcess(t, "run", "a", "x", "--address", s.Addr(), "--namespace", "bare")
	require.Equal(t, 5, r.exit, r.err)
	require.Contains(t, r.err, "[not_set_up] worker refused to start: the namespace lacks the search attributes")

	for range 2 { // the second time there is nothing to do
		r = inProcess(t, "setup", "--address", s.Addr(), "--namespace", "bare")
		require.Zero(t, r.exit, r.err)
	}
	require.Contains(t, r.out, "namespace bare has all search attributes")
	r = inProcess(t, "setup", "--check", "--address", s.Addr(), "--namespace", "bare")
	require.Zero(t, r.exit, r.err)
	r = inProcess(t, "run", "a", "x", "--address", s.Addr(), "--namespace", "bare")
	require.Zero(t, r.exit, r.err)
	require.Contains(t, r.out, "Hello.\ncompleted")
}

func TestSetupOnCloud(t *testing.T) {
	var out, errs bytes.Buffer
	c := newCLI(nil, &out, &errs)
	err := c.setupRefused(&connect.Server{Namespace: "acme.x7"}, []string{agent.AttrAgent, agent.AttrSince}, &serviceerror.PermissionDenied{Message: "no"})
	require.ErrorIs(t, err, agent.CodeNotSetUp)
	require.Equal(t, "tcld namespace search-attributes add --namespace acme.x7 --search-attribute \"FermataAgent=Keyword\"\n"+
		"tcld namespace search-attributes add --namespace acme.x7 --search-attribute \"FermataSince=Datetime\"\n", out.String())
	wrong := agent.Errorf(agent.CodeNotSetUp, "of another type")
	require.Equal(t, error(wrong), c.setupRefused(&connect.Server{}, nil, wrong))
	require.ErrorIs(t, c.setupRefused(&connect.Server{}, nil, errors.New("x")), agent.CodeInternal)
}
