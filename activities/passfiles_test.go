package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	sdktest "go.temporal.io/sdk/testsuite"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/store"
)

// copies runs the activity.
func (s shelf) copies(in CopyFilesInput) (out CopiedFiles, err error) {
	s.t.Helper()
	var suite sdktest.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	CopyFiles.Register(env, s.d.copyFiles)
	v, err := env.ExecuteActivity(CopyFiles.Name, in)
	if err == nil {
		err = v.Get(&out)
	}
	return out, err
}

// Files are copied between a run and its sub-agent alone, and only those of the session that they are
// copied from. One that is gone is a text.
func TestFilesAreCopied(t *testing.T) {
	s := newShelf(t)
	plan, gone := s.put("plan.pdf", "application/pdf", []byte("%PDF-1.4")), s.put("gone.pdf", "application/pdf", []byte("%PDF-1.5"))
	plan.Text = "the plan"
	missing := *gone.File
	missing.Digest = strings.Repeat("0", 64)
	gone.File = &missing
	foreign := *plan.File
	foreign.Session = "victim"
	in := CopyFilesInput{From: "s", To: "s/b-1", Parts: []agent.Part{plan, gone, {Type: agent.PartFile, File: &foreign}}}
	for range 2 { // repeating it changes nothing
		out, err := s.copies(in)
		require.NoError(t, err)
		require.Len(t, out.Parts, 2)
		require.Equal(t, "the plan", out.Parts[0].Text)
		require.Equal(t, "s/b-1", out.Parts[0].File.Session)
		require.Regexp(t, `^\[gone.pdf#00000000 \(application/pdf, 8 bytes\): it was deleted\]$`, out.Parts[1].Text)
		data, err := s.d.Log.File(context.Background(), out.Parts[0].File)
		require.NoError(t, err)
		require.Equal(t, "%PDF-1.4", string(data))
	}
	huge := *plan.File
	huge.Size = agent.MaxFile
	many := agent.Part{Type: agent.PartFile, File: &huge}
	out, err := s.copies(CopyFilesInput{From: "s", To: "s/b-1", Parts: []agent.Part{many, many, many, many}})
	require.NoError(t, err)
	require.Contains(t, out.Parts[3].Text, "too large to be copied with the others")
	_, err = s.copies(CopyFilesInput{From: "s/b-1", To: "s", Parts: []agent.Part{plan}})
	require.NoError(t, err)
	for _, to := range []string{"s", "t", "t/b-1", "s/b-1/c-1", "sb-1", "s/"} {
		_, err := s.copies(CopyFilesInput{From: "s", To: to, Parts: []agent.Part{plan}})
		require.ErrorContains(t, err, "neither is the other's parent", to)
	}
}

// unreadable is a store that fails to read some chunks, and counts what it stores.
type unreadable struct {
	store.Store
	err error
	at  string // is in the chunk that is not read; empty for every chunk
	put int
}

func (b *unreadable) Chunk(ctx context.Context, name string) ([]byte, error) {
	data, err := b.Store.Chunk(ctx, name)
	if b.err != nil && bytes.Contains(data, []byte(b.at)) {
		return nil, b.err
	}
	return data, err
}

func (b *unreadable) PutChunk(ctx context.Context, name string, data []byte) error {
	b.put++
	return b.Store.PutChunk(ctx, name, data)
}

// A copy continues where the attempt before it was: a slow store may need several attempts.
func TestACopyContinues(t *testing.T) {
	s := newShelf(t)
	var parts []agent.Part
	for _, text := range []string{"one", "two", "three"} {
		parts = append(parts, s.put(text+".txt", "text/plain", []byte(text)))
	}
	foreign := *parts[0].File
	foreign.Session = "victim"
	in := CopyFilesInput{From: "s", To: "s/b-1", Parts: append([]agent.Part{{Type: agent.PartFile, File: &foreign}}, parts...)}
	b := &unreadable{Store: s.d.Log.Store(), at: "three", err: &agent.Error{Code: agent.CodeStoreUnavailable, Message: "away"}}
	s.d.Log = store.NewLog(b)
	var done atomic.Pointer[CopiedFiles]
	done.Store(&CopiedFiles{})
	require.ErrorIs(t, s.d.copyRest(t.Context(), in, &done), agent.CodeStoreUnavailable)
	require.Len(t, done.Load().Parts, 2, "what the heartbeats leave")

	again := func(left any) CopiedFiles {
		b.put = 0
		var suite sdktest.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.SetHeartbeatDetails(left)
		CopyFiles.Register(env, s.d.copyFiles)
		v, err := env.ExecuteActivity(CopyFiles.Name, in)
		require.NoError(t, err)
		var out CopiedFiles
		require.NoError(t, v.Get(&out))
		return out
	}
	b.err = nil
	out := again(*done.Load())
	require.Equal(t, 1, b.put)
	require.Len(t, out.Parts, 3)
	for i, p := range out.Parts {
		require.Equal(t, parts[i].File.Name, p.File.Name)
		require.Equal(t, "s/b-1", p.File.Session)
	}
	require.Equal(t, out, again("another build has left something else"))
	require.Equal(t, 3, b.put)
	b.put = 0
	require.Equal(t, out, again(out))
	require.Zero(t, b.put, "only the answer was lost")
}

// A reply is paid. So it waits only a short time for a store that is away, whatever files it names.
func TestAReplyDoesNotWaitForItsFiles(t *testing.T) {
	s := newShelf(t)
	plan := s.put("plan.pdf", "application/pdf", []byte("%PDF-1.4"))
	s.log("fork", "s")
	s.d.Log = store.NewLog(&unreadable{Store: s.d.Log.Store(), err: &agent.Error{Code: agent.CodeStoreUnavailable, Message: "away", Retryable: true}})
	entries := saying(plan)
	entries[0].Role = agent.RoleTool
	have := conversation{log: &store.View{}, entries: entries}
	have.in.Session = "fork"
	spec := &agent.Spec{Definition: agent.Definition{Completion: agent.CompletionTool}, Toolset: []agent.ToolSpec{loop.ShowFileTool(&agent.Spec{}), {Name: "subagent__b", Executor: agent.ExecutorSubAgent}}}
	call := func(tool, arguments string) agent.Part {
		return agent.Part{Type: agent.PartToolCall, Call: &agent.ToolCall{Tool: tool, Arguments: json.RawMessage(arguments)}}
	}
	answer := wire.Reply{Parts: []agent.Part{{Type: agent.PartText, Text: "See plan.pdf."}}}
	calls := wire.Reply{Parts: []agent.Part{
		call("subagent__b", `{"task":"x","files":["plan.pdf"]}`), call(agent.ShowFileTool, `{"file":"plan.pdf"}`), call(agent.FinishTool, `{"text":"See plan.pdf."}`),
	}}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Hour) // the activity's own time
		defer stop()
		for _, reply := range []*wire.Reply{&answer, &calls} {
			began := time.Now()
			s.d.findFiles(ctx, have, spec, reply)
			require.LessOrEqual(t, time.Since(began), filesTime)
		}
	})
	require.Empty(t, answer.Returned)
	require.Contains(t, calls.ArgumentErrors[0], "it can't be read now: try again later")
	require.Contains(t, calls.ShownFiles[0].Err, "it can't be read now: try again later")
}

// An answer gives back what it names as a word or by its handle.
func TestWhatAnAnswerNames(t *testing.T) {
	f := &agent.File{Digest: strings.Repeat("ab", 32), Name: "map.pdf"}
	for text, named := range map[string]bool{
		"See map.pdf.": true, "map.pdf": true, "(map.pdf)": true, "bitmap.pdf, and map.pdf": true,
		"bitmap.pdf": false, "map.pdfx": false, "The map is done": false, "": false,
	} {
		require.Equal(t, named, mentions(text, f.Name), text)
	}
	require.True(t, handlesOf("It is map.pdf#abababab.").have(f))
	require.True(t, handlesOf("#12345678 or #"+f.Digest).have(f))
	require.False(t, handlesOf("It is map.pdf#abababaa, or #abab").have(f))
	require.False(t, handlesOf("#abababab").have(&agent.File{Digest: "ab"}), "of a log that was imported")
	require.False(t, mentions("a.b c", "a.b"), "too short to be meant")
	for text, named := range map[string]bool{
		"See map.pdf#12345678.": false, "map.pdf#12AB": false, "map.pdf#12345678, which replaces map.pdf": true,
		"map.pdf#page=3": true, "map.pdf#": true, "# map.pdf": true,
	} {
		require.Equal(t, named, mentions(text, f.Name), text)
	}
	for name, counts := range map[string]bool{
		"notes.md": true, "data.7z": true, "Größe.txt": true, "a b.tar.gz": true,
		"with": false, "v1.2": false, "done.": false, "map.pdf#12345678": false, "I am. Done": false,
	} {
		require.Equal(t, counts, mentions("So "+name+" it is", name), name)
	}
}

// A handle in an answer is about one file: others with its name, or with a word as their name, stay.
func TestAnAnswerGivesBackWhatItNamesAlone(t *testing.T) {
	s := newShelf(t)
	report, newer := s.put("report.pdf", "application/pdf", []byte("%PDF-1.4 a")), s.put("report.pdf", "application/pdf", []byte("%PDF-1.4 b"))
	word, like := s.put("with", "application/pdf", []byte("%PDF-1.4 c")), s.put(report.File.Handle(), "application/pdf", []byte("%PDF-1.4 d"))
	have := conversation{entries: []store.Entry{{Message: agent.Message{Role: agent.RoleTool, Parts: []agent.Part{result(agent.CallOK, report, newer, word, like)}}}}}
	have.in.Session = "s"
	for text, want := range map[string][]agent.File{
		"I am done with it, see " + report.File.Handle() + ".": {*report.File},
		"I am done with report.pdf.":                           {*newer.File},
		"See " + word.File.Handle() + ".":                      {*word.File},
	} {
		require.Equal(t, want, s.d.returned(t.Context(), have, text), text)
	}
}
