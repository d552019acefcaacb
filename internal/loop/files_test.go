package loop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// fileOf is a file of a session, as a tool's result shows it.
func fileOf(session string) agent.Part {
	return agent.Part{Type: agent.PartFile, File: &agent.File{Session: session, Digest: strings.Repeat("0", 64), Size: 5, MediaType: "image/png"}}
}

// manyFiles are files whose names and descriptions are as long in JSON as may be.
func manyFiles(session string, n int) (list []agent.Part) {
	for range n {
		p := fileOf(session)
		p.Text, p.File.Name, p.File.Size, p.File.MediaType = times(agent.MaxFileText), strings.Repeat("<", 255), agent.MaxFile, "a"+strings.Repeat("&", 60)+"/a"+strings.Repeat("&", 120)
		list = append(list, p)
	}
	return list
}

func shows(call string, files ...agent.Part) Input {
	return ToolReturned{Result: agent.ToolResult{Call: call, Tool: "add", Status: agent.CallOK, Text: "drawn", Files: files}}
}

// recorded are the results of the calls in the log's tail.
func recorded(t *testing.T, s State) (list []*agent.ToolResult) {
	t.Helper()
	for _, e := range s.Log.Tail {
		if e.Message != nil && e.Message.Role == agent.RoleTool {
			for _, p := range e.Message.Parts {
				list = append(list, p.Result)
			}
		}
	}
	return list
}

// Whoever makes a call, the run shows only files of its own session that somebody can have stored,
// and says what is missing.
func TestWhichFilesOfAResultAreShown(t *testing.T) {
	broken, text := fileOf("s"), agent.Part{Type: agent.PartText, Text: "no file"}
	broken.File.Digest = "../../etc/passwd"
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}]}`, "calls add {} | add {}")
	p.step(shows("t1.1", fileOf("victim"), fileOf("s"), broken, text, fileOf("s/add-1")))
	require.Equal(t, 1, p.state.waitingFiles())
	p.step(shows("t1.2", make([]agent.Part, agent.MaxFiles+5)...))
	got := recorded(t, p.state)
	require.Equal(t, []agent.Part{fileOf("s")}, got[0].Files)
	require.Equal(t, "drawn\n\n[4 files of this result are not shown: they are not this session's, or more than 200 wait to be stored]", got[0].Text)
	require.Empty(t, got[1].Files)
	require.Positive(t, p.state.Log.SealingSeq, "until a chunk names a file, a collection may take it for unneeded")
}

// A chunk of the log names 256 files at most.
func TestFilesOfResultsThatWaitAreFew(t *testing.T) {
	many := strings.Builder{}
	for i := range 12 {
		fmt.Fprintf(&many, `add {"n":%d} | `, i)
	}
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}],"parallel_tools":64}`, "calls "+strings.TrimSuffix(many.String(), " | "))
	calls := p.state.Calls.List
	require.Len(t, calls, 12)
	var twenty []agent.Part
	for range agent.MaxFiles {
		twenty = append(twenty, fileOf("s"))
	}
	for _, c := range calls {
		p.step(shows(c.ID, twenty...))
	}
	got := recorded(t, p.state)
	require.Len(t, got[9].Files, agent.MaxFiles)
	require.Empty(t, got[10].Files)
	require.Contains(t, got[10].Text, "20 files of this result are not shown")
	require.Equal(t, maxWaitingFiles, p.state.waitingFiles())
	p.line(`send {"parts":[{"type":"file","file":{"session":"s","digest":"` + strings.Repeat("0", 64) + `","size":5,"media_type":"image/png"}}]}`)
	require.ErrorIs(t, p.wrong, agent.CodeTooLarge)
	p.lines("sealed")
	require.Zero(t, p.state.waitingFiles())
}

// Only files of the log move with an export.
func TestAResultWithFilesThatWaitsCannotMove(t *testing.T) {
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}],"client_tools":[{"name":"camera"}]}`, `calls add {} | camera {}`)
	p.step(shows("t1.1", fileOf("s")))
	p.lines("sealed")
	require.Equal(t, agent.StatusSuspended, p.state.Status())
	require.ErrorIs(t, p.state.CheckPortable(), agent.CodeBusy)
	require.ErrorContains(t, p.state.CheckPortable(), "a result with files")
}

// The next request is estimated with what a model is charged for a file.
func TestAFileOfAResultHasItsWeight(t *testing.T) {
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}]}`, "calls add {}")
	before := p.state.Budget.BytesSince
	p.step(shows("t1.1", fileOf("s")))
	require.Equal(t, fileOf("s").File.Weight()+len("drawn")+frame, p.state.Budget.BytesSince-before)
}

// A run at rest keeps what its results show, and has counted all of it.
func TestFilesOfResultsTakeSpace(t *testing.T) {
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}],"client_tools":[{"name":"camera"}]}`, `calls add {} | camera {}`)
	space := p.state.space()
	p.step(shows("t1.1", manyFiles("s", agent.MaxFiles)...))
	c := p.state.Calls.List[0]
	require.Len(t, c.Result.Files, agent.MaxFiles)
	require.LessOrEqual(t, written(c), c.Size)
	require.LessOrEqual(t, written(c.Result.Files), space-p.state.space())
}
