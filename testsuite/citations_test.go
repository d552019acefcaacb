package testsuite_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/worker"
)

// What an answer cites is in the outcome and in the transcript; what can't be is counted. The
// model's next turn has it, too, and a script of the conversation repeats it.
func TestCitations(t *testing.T) {
	page := agent.Citation{Start: 8, End: 11, URL: "https://a.example/rom", Title: "Röm", Text: "Rom ist sonnig."}
	script := testsuite.NewScript(
		testsuite.Reply{Text: "Grüße Rom.", Citations: []agent.Citation{page, {End: 99, Title: "outside"}, {URL: "javascript:x"}}},
		testsuite.Reply{Text: "None."})
	s := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Agents: []agent.Definition{{Name: "reader", Model: "m"}}}, Model: script,
	})
	run := s.Start("reader", "How is Rome?", nil)
	o := run.Completed()
	require.Equal(t, []agent.Citation{page}, o.Citations)
	require.Equal(t, "Rom", o.Text[o.Citations[0].Start:o.Citations[0].End])
	said := run.Transcript()[1]
	require.Equal(t, []agent.Part{{Type: agent.PartText, Text: "Grüße Rom.", Citations: []agent.Citation{page}, Uncited: 2}}, said.Parts)

	again := testsuite.New(t, &testsuite.Options{
		Worker: &worker.Options{Agents: []agent.Definition{{Name: "reader", Model: "m"}}}, Model: testsuite.ScriptFromMessages(run.Transcript()),
	})
	require.Equal(t, o.Citations, again.Start("reader", "How is Rome?", nil).Completed().Citations)
}

// A script's file says what a text cites.
func TestCitationsOfAScript(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script.yaml")
	require.NoError(t, os.WriteFile(path, []byte("replies:\n  - {text: Rome., citations: [{start: 0, end: 4, url: 'https://a.example', title: A, unit: page, from: 2, to: 3, text: Roma}]}\n"), 0o600))
	script, err := testsuite.LoadScript(path)
	require.NoError(t, err)
	s := testsuite.New(t, &testsuite.Options{Worker: &worker.Options{Agents: []agent.Definition{{Name: "reader", Model: "m"}}}, Model: script})
	require.Equal(t, []agent.Citation{{End: 4, URL: "https://a.example", Title: "A", Unit: agent.CitedPages, From: 2, To: 3, Text: "Roma"}}, s.Start("reader", "How is Rome?", nil).Completed().Citations)
}
