package loop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// contentFile is a file of a session, as a call saves it.
func contentFile(session, name, content string) agent.File {
	sum := sha256.Sum256([]byte(content))
	return agent.File{Session: session, Digest: hex.EncodeToString(sum[:]), Size: len(content), MediaType: "text/plain", Name: name}
}

// manyArtifacts are artifacts whose names are as long in JSON as may be.
func manyArtifacts(session, call string) (list []agent.File) {
	for i := range agent.MaxFiles {
		name := fmt.Sprintf("%d%s", i, call)
		f := contentFile(session, name+strings.Repeat("<", agent.MaxArtifactName-len(name)), "x")
		f.MediaType, f.Size = "a"+strings.Repeat("&", 60)+"/a"+strings.Repeat("&", 120), agent.MaxFile
		list = append(list, f)
	}
	return list
}

// childArtifacts are those in the outcome of a child.
func childArtifacts(session string) (list []agent.Artifact) {
	for _, f := range manyArtifacts(session, "c") {
		list = append(list, agent.Artifact{File: f, Version: 1e9, Run: strings.Repeat("r", 36), Agent: strings.Repeat("b", 32), Call: "t1000000.100"})
	}
	return list
}

// saves is the result of a call that saves artifacts.
func saves(call string, files ...agent.File) Input {
	return ToolReturned{Result: agent.ToolResult{Call: call, Tool: "add", Status: agent.CallOK, Text: "made"}, Artifacts: files}
}

// versions are the artifacts that a run knows, as name:version.
func versions(list []agent.Artifact) (all []string) {
	for _, a := range list {
		all = append(all, fmt.Sprintf("%s:%d", a.Name, a.Version))
	}
	return all
}

// seals stores the log as long as there is something to store.
func seals(p *player) {
	for p.state.Log.SealingSeq > 0 {
		p.line("sealed")
	}
}

const opensAdd = `opened {"toolset":[{"name":"add"}]}`

// Saving a name again makes the next version, and saving the same bytes again none.
func TestVersionsOfArtifacts(t *testing.T) {
	p := played(t, "begin go", opensAdd, "calls add {} | add {}", "saves t1.1 report.md=one chart.png=x", "saves t1.2 report.md=one report.md=two report.md=two")
	require.Equal(t, []string{"chart.png:1", "report.md:2"}, versions(p.state.Artifacts.List))
	require.Equal(t, "t1.2", p.state.Artifacts.List[1].Call)
	got := recorded(t, p.state)
	require.Equal(t, "made\n\n[saved: report.md version 1, chart.png version 1]", got[0].Text)
	require.Equal(t, "made\n\n[saved: report.md version 1, report.md version 2, report.md version 2]", got[1].Text)
	require.Positive(t, p.state.Log.SealingSeq, "until a chunk names the bytes, a collection may take them for unneeded")
	p.lines("calls add {}", "saves t2.1 report.md=one")
	require.Equal(t, []string{"chart.png:1", "report.md:3"}, versions(p.state.Artifacts.List), "the bytes of an older version are another version")
	p.lines("says done")
	seals(p)
	require.Equal(t, []string{"chart.png:1", "report.md:3"}, versions(p.state.End.Outcome.Artifacts))
}

// Whoever makes a call, the run saves only files of its own session that somebody can have stored,
// and says what it refuses.
func TestWhichArtifactsAreRefused(t *testing.T) {
	broken := contentFile("s", "a", "x")
	broken.Digest = "../../etc/passwd"
	p := played(t, "begin go", opensAdd, "calls add {} | add {}")
	p.step(saves("t1.1", contentFile("victim", "theirs", "x"), broken, contentFile("s", "../a", "x"), contentFile("s", "", "x"), contentFile("s", "mine", "x")))
	require.Equal(t, []string{"mine:1"}, versions(p.state.Artifacts.List))
	p.step(saves("t1.2", make([]agent.File, 1000)...))
	got := recorded(t, p.state)
	require.Equal(t, "made\n\n[saved: mine version 1; not saved: theirs: it is no file of this session; a: it is no file of this session; ../a: it is no file of this session; : it is no file of this session]", got[0].Text)
	require.Less(t, len(got[1].Text), artifactNote+10)
}

// A session has so many names of artifacts; those that it has get new versions all the same.
func TestASessionHasSoManyArtifacts(t *testing.T) {
	p := played(t, "begin go", opensAdd)
	for turn := range 6 {
		p.line(fmt.Sprintf(`calls add {"n":%d}`, turn))
		var files []agent.File
		for i := range 18 {
			files = append(files, contentFile("s", fmt.Sprintf("a%d-%d", turn, i), "x"))
		}
		p.step(saves(fmt.Sprintf("t%d.1", turn+1), files...))
		seals(p)
	}
	n := len(p.state.Artifacts.List)
	require.Less(t, n, agent.MaxArtifacts+1)
	require.Greater(t, n, 50)
	require.LessOrEqual(t, written(p.state.Artifacts.List), artifactShare)
	p.line(`calls add {"n":7}`)
	p.step(saves("t7.1", contentFile("s", "new", "x"), contentFile("s", "a0-0", "y")))
	require.Len(t, p.state.Artifacts.List, n)
	require.Equal(t, "a0-0:2", versions(p.state.Artifacts.List)[n-1])
	require.Contains(t, recorded(t, p.state)[len(recorded(t, p.state))-1].Text, fmt.Sprintf("[saved: a0-0 version 2; not saved: new: the session has %d artifacts, and no space for more names; save under one of them]", n))
}

// A failed call keeps what it has saved. A call that asks a person is made again, and saves nothing.
func TestWhenArtifactsAreSaved(t *testing.T) {
	p := played(t, "begin go", opensAdd, "calls add {} | add {}")
	p.step(ToolReturned{Result: agent.ToolResult{Call: "t1.1", Tool: "add", Status: agent.CallFailed, Text: "no"}, Artifacts: []agent.File{contentFile("s", "a", "x")}})
	p.step(ToolReturned{Result: agent.ToolResult{Call: "t1.2", Tool: "add", Status: agent.CallOK}, Question: &agent.ToolQuestion{Text: "Which?"}, Artifacts: []agent.File{contentFile("s", "b", "x")}})
	require.Equal(t, []string{"a:1"}, versions(p.state.Artifacts.List))
	p.step(saves("t1.1", contentFile("s", "late", "x")))
	require.ErrorIs(t, p.wrong, agent.CodeStale)
	require.Equal(t, []string{"a:1"}, versions(p.state.Artifacts.List))
}

// A call saves so many. Whoever makes it, no version comes of the others.
func TestACallSavesFewArtifacts(t *testing.T) {
	p := played(t, "begin go", opensAdd, "calls add {}")
	var files []agent.File
	for i := range 150 {
		files = append(files, contentFile("s", "a", fmt.Sprint(i)))
	}
	p.step(saves("t1.1", files...))
	require.Equal(t, []string{fmt.Sprintf("a:%d", agent.MaxFiles)}, versions(p.state.Artifacts.List))
	require.Contains(t, recorded(t, p.state)[0].Text, "130 more: a call saves at most 20")
}

// The session's next run counts on. A fork does not use a version twice that the session has, and a reset
// or a fork that drops artifacts knows none (HA-102).
func TestWhatARunInheritsOfArtifacts(t *testing.T) {
	first := played(t, "begin go", opensAdd, "calls add {}", "saves t1.1 report.md=one", "calls add {}", "saves t2.1 report.md=two other.md=x", "says done")
	seals(first)
	require.Equal(t, 2, first.state.Counters.Artifact)
	one := agent.Artifact{File: contentFile("s", "report.md", "one"), Version: 1}
	two := agent.Artifact{File: contentFile("s", "report.md", "two"), Version: 2}
	for name, c := range map[string]struct {
		start   string
		located Located
		want    []string
	}{
		"a follow-up":              {`{"input":{"text":"go"}}`, Located{Artifacts: []agent.Artifact{two}}, []string{"report.md:3", "new.md:1"}},
		"a fork":                   {`{"input":{"text":"go"},"from":{"checkpoint":"cp-9"}}`, Located{Artifacts: []agent.Artifact{one}, Forked: &agent.Forked{Session: "s", Checkpoint: "cp-9"}}, []string{"report.md:3", "new.md:3"}},
		"a fork that drops":        {`{"input":{"text":"go"},"from":{"checkpoint":"cp-9","drop_artifacts":true}}`, Located{Forked: &agent.Forked{Session: "s", Checkpoint: "cp-9", DropArtifacts: true}}, []string{"report.md:3", "new.md:3"}},
		"a fork in a session anew": {`{"input":{"text":"go"},"from":{"session":"t","checkpoint":"cp-9"}}`, Located{Artifacts: []agent.Artifact{one}, Forked: &agent.Forked{Session: "t", Checkpoint: "cp-9"}}, []string{"report.md:2", "new.md:1"}},
		"a reset":                  {`{"input":{"text":"go"},"carry":"reset"}`, Located{}, []string{"report.md:3", "new.md:3"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := played(t, "started "+c.start)
			p.ended = exported(t, first.state)
			p.line(opensAdd)
			if p.state.Phase == RunLocating {
				c.located.Head, c.located.Seq, c.located.Counters = "old", 40, p.ended.Counters
				p.step(c.located)
			} else {
				require.Equal(t, "a reset", name)
			}
			require.Equal(t, versions(c.located.Artifacts), versions(p.state.Artifacts.List))
			call := callID(p.state.Turn.N, 1)
			p.lines("calls add {}")
			p.step(saves(call, contentFile("s", "report.md", "three"), contentFile("s", "new.md", "x")))
			require.NoError(t, p.wrong)
			require.Equal(t, c.want, versions(p.state.Artifacts.List))
		})
	}
}

// A run names what its sub-agents have saved, wherever they ended: in the outcome, and each in its own
// part of the handoff. Another session's artifact is nobody's.
func TestArtifactsOfSubAgents(t *testing.T) {
	below := agent.Artifact{File: contentFile("s/b-1/c-1", "deep.md", "x"), Version: 2, Run: "r", Agent: "c", Call: "t1.1"}
	own := agent.Artifact{File: contentFile("s/b-1", "part.md", "x"), Version: 1, Run: "r", Agent: "b", Call: "t1.1"}
	other := agent.Artifact{File: contentFile("s/b-10", "part.md", "x"), Version: 1, Run: "r", Agent: "b", Call: "t1.1"}
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}],"agents":[{"agent":"b"}]}`, `calls subagent__b {"task":"x"} | add {}`, "child-started s/b-1", "saves t1.2 mine.md=x")
	p.step(ChildEnded{Session: "s/b-1", Outcome: &agent.Outcome{Session: "s/b-1", Agent: "b", Status: agent.StatusCompleted, Text: "done", Artifacts: []agent.Artifact{below, own, other, {}}, ArtifactsLeft: 3}})
	require.Empty(t, p.state.Children.List[0].Outcome.Artifacts, "the ledger has them")
	require.Equal(t, []agent.Artifact{below, own}, MakeHandoff{Artifacts: p.state.Artifacts.Children}.ArtifactsOf("s/b-1"))
	p.lines("says done")
	seals(p)
	require.Equal(t, []string{"mine.md:1", "deep.md:2", "part.md:1"}, versions(p.state.End.Outcome.Artifacts))
	require.Equal(t, 3, p.state.End.Outcome.ArtifactsLeft)
}

// A suspended run with artifacts can move, and a forged ledger can't.
func TestARunWithArtifactsCanMove(t *testing.T) {
	p := played(t, "begin go", `opened {"toolset":[{"name":"add"}],"tools":["ask_user"]}`, "calls add {}", "saves t1.1 report.md=one", `calls ask_user {"question":"?"}`)
	seals(p)
	require.NoError(t, p.state.CheckPortable())
	require.Empty(t, p.state.inconsistency())
	s := p.state
	s.unshare()
	s.Artifacts.List = []agent.Artifact{{File: contentFile("s", "a/b", "x"), Version: 1}}
	require.Contains(t, s.inconsistency(), "artifact")
	other := agent.Artifact{File: contentFile("victim", "a", "x"), Version: 1}
	s.Artifacts.List, s.Artifacts.Children = p.state.Artifacts.List, []agent.Artifact{other}
	require.Contains(t, s.inconsistency(), "artifact", "sub-agents have their artifacts below the session")
	s.Artifacts.Children[0].Session = "s/b-1"
	require.Empty(t, s.inconsistency())

	a := Artifacts{List: append(p.state.Artifacts.all(), other)}
	require.True(t, a.Foreign("s", nil))
	require.False(t, a.Foreign("s", []agent.Artifact{other}), "a fork has it in its log")
	s = p.state
	s.unshare()
	s.Counters.ArtifactFloor = -5
	require.NotEmpty(t, s.inconsistency())
}

// Beyond its space a run counts the artifacts of sub-agents.
func TestArtifactsOfManySubAgents(t *testing.T) {
	a := Artifacts{}
	for i := range 30 {
		session := fmt.Sprintf("s/b-%d", i)
		a.addChild(session, &agent.Outcome{Artifacts: childArtifacts(session)})
	}
	require.LessOrEqual(t, written(a.Children), artifactShare)
	require.Equal(t, 30*agent.MaxFiles, len(a.Children)+a.Left)
	require.True(t, a.sound("s"))
}
