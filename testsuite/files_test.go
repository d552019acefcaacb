package testsuite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// The model gets the files of a start, also without a server.
func TestFilesOfAStart(t *testing.T) {
	script := testsuite.NewScript(testsuite.Reply{Text: "A PDF."})
	s := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Agents: []agent.Definition{{Name: "reader", Model: "m"}}}, Model: script,
	})
	run := s.Start("reader", "What is this?", &client.StartOptions{Files: []client.FileInput{{Name: "a.pdf", Data: []byte("%PDF-1.4")}}})
	run.Completed()
	got := script.Requests()[0]
	files := got.Messages[len(got.Messages)-1].Files()
	require.Len(t, files, 1)
	require.Equal(t, "%PDF-1.4", string(got.Files[files[0].Digest]))
}
