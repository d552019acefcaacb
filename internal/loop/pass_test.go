package loop

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// imageOf is a file of a session, by its digits.
func imageOf(session, digit, name string) agent.File {
	return agent.File{Session: session, Digest: strings.Repeat(digit, 64), Size: 5, MediaType: "image/png", Name: name}
}

// gives is a model's reply that gives work to the agent b, with files.
func gives(arguments string, files ...agent.File) wire.Reply {
	call := agent.ToolCall{Tool: "subagent__b", Arguments: json.RawMessage(arguments)}
	return wire.Reply{Finish: agent.FinishToolCalls, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &call}}, Files: [][]agent.File{files}}
}

const oneSubAgent = `opened {"agents":[{"agent":"b"}],"limits":{"agents":9}}`

// starts returns the starts of children among effects.
func starts(effects []Effect) (all []StartChild) {
	for _, e := range effects {
		if s, ok := e.(StartChild); ok {
			all = append(all, s)
		}
	}
	return all
}

// A run passes on the files that its model has named, if they are its own, and says why not.
func TestWhichFilesASubAgentGets(t *testing.T) {
	a, b := imageOf("s", "a", "a.png"), imageOf("s", "b", "b.png")
	big := a
	big.Size = agent.MaxFile
	var four []agent.File
	for _, digit := range []string{"1", "2", "3", "4"} {
		f := imageOf("s", digit, "")
		f.Size = agent.MaxFile
		four = append(four, f)
	}
	for name, c := range map[string]struct {
		arguments string
		files     []agent.File
		passed    int
		refused   string
	}{
		"named":             {`{"task":"look","files":["a.png","b.png"]}`, []agent.File{a, b}, 2, ""},
		"named twice":       {`{"task":"look","files":["a.png","a.png"]}`, []agent.File{a, a}, 1, ""},
		"none":              {`{"task":"look"}`, []agent.File{a}, 0, ""},
		"another session's": {`{"task":"look","files":["a.png"]}`, []agent.File{imageOf("victim", "a", "a.png")}, 0, `the file "a.png" is not this session's`},
		"not resolved":      {`{"task":"look","files":["a.png","b.png"]}`, []agent.File{a}, 0, `the file "b.png" is not this session's`},
		"too many":          {`{"task":"look","files":["1"` + strings.Repeat(`,"1"`, agent.MaxFiles) + `]}`, nil, 0, "21 files are named"},
		"too much":          {`{"task":"look","files":["1","2","3","4"]}`, four, 0, "the files have 83886080 bytes together"},
	} {
		t.Run(name, func(t *testing.T) {
			p := played(t, "begin go", oneSubAgent)
			next, effects, err := Step(p.state, Moment{At: p.now}, ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: gives(c.arguments, c.files...)})
			require.NoError(t, err)
			if c.refused != "" {
				require.Empty(t, starts(effects))
				p.state = next
				require.Contains(t, recorded(t, p.state)[0].Text, c.refused)
				return
			}
			require.Len(t, starts(effects), 1)
			got := starts(effects)[0].Files
			require.Len(t, got, c.passed)
			require.Equal(t, fileParts(c.files[:c.passed]), got)
		})
	}
}

// A start may name files of the workflow that has started the run, as Temporal knows it, and of nobody
// else.
func TestAStartNamesFilesOfTheParentAlone(t *testing.T) {
	for name, c := range map[string]struct {
		parent, claimed, session string
		refused                  bool
	}{
		"the parent's":            {"s", "s", "s/b-1", false},
		"a claimed parent's":      {"thief", "s", "s/b-1", true},
		"another one is claimed":  {"s", "t", "s/b-1", true},
		"below another one":       {"s", "s", "thief/b-1", true},
		"no child of a workflow":  {"", "s", "s/b-1", true},
		"of another one's child?": {"s/b-1", "s/b-1", "s/b-1/c-1", true},
	} {
		t.Run(name, func(t *testing.T) {
			start := agent.Start{Agent: "b", Input: agent.Input{Text: "look", Parts: fileParts([]agent.File{imageOf("s", "a", "a.png")})}}
			s, _, err := Step(State{}, Moment{}, Begin{Session: c.session, Run: "r", Start: start, ParentSession: c.parent, ChildStart: &wire.ChildStart{Parent: wire.Parent{Session: c.claimed, Run: "p"}}})
			require.NoError(t, err)
			require.Equal(t, c.refused, s.End.Outcome != nil)
			if c.refused {
				require.Equal(t, agent.CodeInvalidInput, s.End.Outcome.Error.Code)
			}
		})
	}
}

// The run begins with copies of its own. The words for a file that is gone are not the input of a flow.
func TestARunBeginsWithItsCopies(t *testing.T) {
	start := agent.Start{Agent: "b", Input: agent.Input{Text: "look", Parts: fileParts([]agent.File{imageOf("s", "a", "a.png"), imageOf("s", "b", "b.png")})}}
	s, _, err := Step(State{}, Moment{}, Begin{Session: "s/b-1", Run: "r", Start: start, ParentSession: "s", ChildStart: &wire.ChildStart{Parent: wire.Parent{Session: "s", Run: "p"}}})
	require.NoError(t, err)
	from, parts := s.FilesOfParent()
	require.Equal(t, "s", from)
	require.Equal(t, start.Input.Parts, parts)
	spec := &agent.Spec{V: 1, Definition: agent.Definition{Name: "b", Model: "m"}.WithDefaults()}
	gone := agent.Part{Type: agent.PartText, Text: "[b.png: it was deleted]"}
	own := fileParts([]agent.File{imageOf("s/b-1", "a", "a.png")})
	s, _, err = Step(s, Moment{}, Opened{Spec: spec, Parts: []agent.Part{own[0], gone, start.Input.Parts[0]}})
	require.NoError(t, err)
	var said *agent.Message
	for _, e := range s.Log.Tail {
		if e.Message != nil {
			said = e.Message
		}
	}
	require.Equal(t, []agent.Part{gone, {Type: agent.PartText, Text: "look"}, own[0]}, said.Parts)
}

// What a child gives back is in the result of the call that waits for it, as files of this session.
func TestAChildGivesFilesBack(t *testing.T) {
	p := played(t, "begin go", oneSubAgent)
	p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: gives(`{"task":"draw"}`)})
	p.lines("child-started s/b-1")
	o := &agent.Outcome{Session: "s/b-1", Status: agent.StatusCompleted, Text: "See a.png", Files: []agent.File{imageOf("s/b-1", "a", "a.png")}}
	own := fileParts([]agent.File{imageOf("s", "a", "a.png")})
	p.step(ChildEnded{Session: "s/b-1", Outcome: o, Files: append(own, agent.Part{Type: agent.PartText, Text: "[b.png: it was deleted]"}, fileParts(o.Files)[0])})
	got := recorded(t, p.state)[0]
	require.Equal(t, own, got.Files, "and none of another session")
	require.Contains(t, got.Text, `"missing_files":["[b.png: it was deleted]"]`)
	require.Empty(t, p.state.Children.Files(), "the result shows them")
}

// The files of a child in the background wait for a call of subagent_wait, which shows them once.
func TestFilesOfAChildInTheBackground(t *testing.T) {
	p := played(t, "begin go", `opened {"agents":[{"agent":"b"}],"lifecycle":true,"limits":{"agents":9}}`)
	p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: gives(`{"task":"draw","background":true}`)})
	p.lines("child-started s/b-1")
	own := fileParts([]agent.File{imageOf("s", "a", "a.png")})
	p.step(ChildEnded{Session: "s/b-1", Outcome: &agent.Outcome{Session: "s/b-1", Status: agent.StatusCompleted}, Files: own})
	require.Len(t, p.state.Children.Files(), 1)
	for _, files := range [][]agent.Part{own, nil} {
		p.lines(`calls subagent_wait {}`)
		all := recorded(t, p.state)
		require.Equal(t, files, all[len(all)-1].Files)
	}
}

// The outcome has the files that the answer gives back: only the session's own.
func TestAnOutcomeHasFiles(t *testing.T) {
	p := played(t, "begin go", `opened {}`)
	own := imageOf("s", "a", "a.png")
	p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishStop, Parts: []agent.Part{{Type: agent.PartText, Text: "a.png"}}, Returned: []agent.File{imageOf("victim", "a", "a.png"), own}}})
	require.Equal(t, []agent.File{own}, p.state.End.Outcome.Files)

	p = played(t, "begin go", `opened {"completion":"tool"}`)
	call := agent.ToolCall{Tool: agent.FinishTool, Arguments: json.RawMessage(`{"summary":"see a.png"}`)}
	p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: wire.Reply{Finish: agent.FinishToolCalls, Parts: []agent.Part{{Type: agent.PartToolCall, Call: &call}}, Files: [][]agent.File{{own}}}})
	require.Equal(t, []agent.File{own}, p.state.End.Outcome.Files)
}

// Files go to a sub-agent that waits, with the message of a resume; and what a forged order names is not
// shown.
func TestFilesOfAnOrder(t *testing.T) {
	p := played(t, "begin go", `opened {"agents":[{"agent":"b"}],"lifecycle":true,"limits":{"agents":9}}`)
	p.step(ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: gives(`{"task":"draw","background":true}`)})
	p.lines("child-started s/b-1")
	r := gives(`{"child":"s/b-1","input":"And this?","files":["a.png"]}`, imageOf("s", "a", "a.png"))
	r.Parts[0].Call.Tool = resumeTool
	_, effects, err := Step(p.state, Moment{At: p.now}, ModelReplied{AskSeq: p.state.Turn.AskSeq, Reply: r})
	require.NoError(t, err)
	var order *wire.ParentOrder
	for _, e := range effects {
		if o, ok := e.(OrderChild); ok {
			order = &o.Order
		}
	}
	require.NotNil(t, order)
	require.Equal(t, fileParts([]agent.File{imageOf("s", "a", "a.png")}), order.Files)

	own, foreign, broken := imageOf("s/b-1", "a", "a.png"), imageOf("s", "b", "b.png"), imageOf("s/b-1", "b", "../b.png")
	for want, files := range [][]agent.File{{own, foreign}, {own, broken}} {
		q := played(t)
		q.step(Begin{Session: "s/b-1", Run: "r", Start: agent.Start{Agent: "b", Input: agent.Input{Text: "look"}}, ParentSession: "s", ChildStart: &wire.ChildStart{Parent: wire.Parent{Session: "s", Run: "p"}}})
		q.lines(`opened {"toolset":[{"name":"add"}]}`)
		own := wire.ParentOrder{Run: "r", From: "p", Own: true, By: "agent:s", Verb: agent.VerbPause, Reason: "wait"}
		q.step(ParentOrdered{Order: own})
		q.lines("calls add {}")
		q.step(shows("t1.1"))
		q.lines("sealed")
		own.Verb, own.Reason, own.Files = agent.VerbResume, "And this?", fileParts(files)
		q.step(ParentOrdered{Order: own})
		var shown int
		for _, e := range q.state.Log.Tail {
			if e.Message != nil {
				shown += len(e.Message.Files())
			}
		}
		require.Equal(t, want, shown+len(q.state.Messages.Files()))
		require.Empty(t, q.state.Holds.List)
	}
}
