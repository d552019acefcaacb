package worker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/skill"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// written are skills of a directory, by name: front matter, and instructions "NAME's way".
func written(t *testing.T, fronts map[string]string) []*skill.Skill {
	t.Helper()
	dir := t.TempDir()
	for name, front := range fronts {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, name, "references"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "SKILL.md"), []byte("---\nname: "+name+"\n"+front+"\n---\n"+name+"'s way.\n"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name, "references", "more.md"), []byte("More of "+name+"."), 0o600))
	}
	all, err := skill.ReadDirs(dir)
	require.NoError(t, err)
	return all
}

func two(t *testing.T) []*skill.Skill {
	return written(t, map[string]string{
		"ship": "description: Deploy a release to production.\npaths: ['infra/**']\nallowed-tools: [deploy]",
		"pdf":  "description: Extract text from PDF documents.\nwhen_to_use: A user sends a document.",
		"mine": "description: Deploy a release to production for me.\ndisable-model-invocation: true",
	})
}

// skilled plays a run of an agent with these skills. It returns what the model was asked, and the
// events about skills.
func skilled(t *testing.T, o worker.Options, match *agent.SkillMatch, text string, start *client.StartOptions, replies ...testsuite.Reply) ([]model.Request, []agent.Event) {
	t.Helper()
	script := testsuite.NewScript(append(replies, testsuite.Reply{Text: "done"})...)
	plain := func(name string) tool.Tool {
		return tool.New(name, name, func(context.Context, *tool.Call, struct{}) (string, error) { return "ok", nil }, nil)
	}
	o.Tools = []tool.Tool{plain("deploy"), plain("look")}
	o.Agents = []agent.Definition{{Name: "a", Model: "script", Tools: []string{"deploy", "look", agent.AwaitResumptionTool, agent.SaveArtifactTool}, Skills: []string{"*"}, SkillMatch: match}}
	o.Models, o.Logger = map[string]model.Model{"script": script}, zap.NewNop()
	run := testsuite.New(t, &testsuite.Options{Worker: &o}).Start("a", text, start)
	run.Completed()
	var events []agent.Event
	for _, e := range run.Events() {
		if e.Skill != nil || e.Matched != nil {
			events = append(events, e)
		}
	}
	return script.Requests(), events
}

func toolsOf(r model.Request) (names []string) {
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// The first request has the instructions of the skill that fits the prompt or the working files, and only
// its tools beside the runtime's. With no candidate the event says so, and two candidates are in
// it, the best first (HA-61, HA-127, HA-128, HA-131, HA-133).
func TestSkillsAreMatched(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		files []string
		want  []string // candidates
	}{
		"words":          {"Deploy the release to production", nil, []string{"ship"}},
		"a path":         {"Look at this", []string{"infra/main.tf"}, []string{"ship"}},
		"a name":         {"Use ship for it", nil, []string{"ship"}},
		"two candidates": {"Use ship to extract text from documents", nil, []string{"ship", "pdf"}},
		"none":           {"What is the time?", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			asked, events := skilled(t, worker.Options{Skills: two(t)}, &agent.SkillMatch{}, c.text, &client.StartOptions{WorkingFiles: c.files})
			var found []string
			for _, one := range events[0].Matched.Candidates {
				found = append(found, one.Name)
			}
			require.Equal(t, c.want, found)
			require.NotContains(t, asked[0].Instructions, "mine", "disable-model-invocation is neither matched nor listed")
			if c.want == nil {
				require.Len(t, events, 1, "an event without candidates")
				require.Equal(t, []string{"deploy", "look", "save_artifact", "await_resumption", "skill"}, toolsOf(asked[0]))
				return
			}
			require.Contains(t, asked[0].Instructions, "ship's way.")
			require.NotContains(t, asked[0].Instructions, "pdf's way.", "top_n is 1")
			require.Equal(t, []string{"deploy", "save_artifact", "await_resumption", "skill"}, toolsOf(asked[0]))
			require.Equal(t, agent.EventSkillActivated, events[1].Type)
			require.Equal(t, []string{"look"}, events[1].Skill.Removed)
			require.Equal(t, []string{"deploy", "save_artifact", "await_resumption", "skill"}, events[1].Skill.Remaining)
		})
	}
}

// The host's function chooses. If it fails or panics, metadata do, and the event says why (HA-127).
func TestTheHostMatchesSkills(t *testing.T) {
	host := &agent.SkillMatch{Strategy: agent.SkillsByHost}
	for name, c := range map[string]struct {
		matcher  activities.SkillMatcher
		want     string
		fallback string
	}{
		"it chooses": {func(context.Context, skill.Task, []agent.Skill) ([]agent.SkillCandidate, error) {
			return []agent.SkillCandidate{{Name: "nowhere"}, {Name: "mine", Score: 2}, {Name: "pdf", Score: 1}}, nil
		}, "pdf", ""},
		"it fails": {func(context.Context, skill.Task, []agent.Skill) ([]agent.SkillCandidate, error) {
			return nil, errors.New("no vectors")
		}, "ship", "no vectors"},
		"it panics": {func(context.Context, skill.Task, []agent.Skill) ([]agent.SkillCandidate, error) { panic("oh") }, "ship", "oh"},
	} {
		t.Run(name, func(t *testing.T) {
			asked, events := skilled(t, worker.Options{Skills: two(t), SkillMatcher: c.matcher}, host, "Deploy the release to production", nil)
			require.Contains(t, asked[0].Instructions, c.want+"'s way.")
			require.Contains(t, events[0].Matched.Fallback, c.fallback)
			require.Equal(t, c.fallback == "", events[0].Matched.Strategy == agent.SkillsByHost)
		})
	}
}

// A skill that fits no longer is deactivated before the next turn, and its narrowing goes with it (HA-128, HA-129).
func TestSkillsSwitch(t *testing.T) {
	turn := 0
	matcher := func(context.Context, skill.Task, []agent.Skill) ([]agent.SkillCandidate, error) {
		turn++
		return []agent.SkillCandidate{{Name: []string{"ship", "pdf"}[turn-1]}}, nil
	}
	sticky := false
	asked, events := skilled(t, worker.Options{Skills: two(t), SkillMatcher: matcher}, &agent.SkillMatch{Strategy: agent.SkillsByHost, Sticky: &sticky}, "go", nil,
		testsuite.Reply{Calls: []testsuite.Call{{Tool: "deploy"}}})
	require.NotContains(t, toolsOf(asked[0]), "look")
	require.NotContains(t, asked[1].Instructions, "ship's way.")
	require.Contains(t, asked[1].Instructions, "pdf's way.")
	require.Contains(t, toolsOf(asked[1]), "look")
	require.Equal(t, []string{"skill.matched", "skill.activated", "skill.matched", "skill.deactivated", "skill.activated"}, typesOf(events))
}

func typesOf(events []agent.Event) (types []string) {
	for _, e := range events {
		types = append(types, string(e.Type))
	}
	return types
}

// The model loads a skill, reads its files and ends it. What it may not do is told as a result, and
// without skill_match nothing is matched (HA-131, HA-132).
func TestTheModelLoadsSkills(t *testing.T) {
	say := func(arguments map[string]any) testsuite.Reply {
		return testsuite.Reply{Calls: []testsuite.Call{{Tool: agent.SkillTool, Arguments: arguments}}}
	}
	asked, events := skilled(t, worker.Options{Skills: two(t)}, nil, "Deploy the release to production", &client.StartOptions{Skills: []string{"mine"}},
		say(map[string]any{"name": "pdf"}), say(map[string]any{"name": "pdf", "path": "references/more.md"}), say(map[string]any{"name": "pdf", "path": "../ship/SKILL.md"}),
		say(map[string]any{"name": "mine"}), say(map[string]any{"name": "pdf", "end": true}), say(map[string]any{"name": "pdf", "end": true}))
	require.Contains(t, asked[0].Instructions, "mine's way.", "a user named it")
	require.Contains(t, asked[0].Instructions, "> pdf: Extract text from PDF documents. When to use it: A user sends a document.")
	require.Contains(t, asked[1].Instructions, "pdf's way.")
	require.Contains(t, asked[1].Instructions, "references/more.md")
	for i, want := range []string{"is active", "More of pdf.", "has no file", "no skill \"mine\" that you may load", "is ended", "is not active"} {
		messages := asked[i+1].Messages
		require.Contains(t, messages[len(messages)-1].Parts[0].Result.Text, want)
	}
	require.NotContains(t, asked[5].Instructions, "pdf's way.")
	require.Equal(t, []string{"skill.activated", "skill.activated", "skill.deactivated"}, typesOf(events))
}

// A worker refuses what could never work.
func TestWrongSkills(t *testing.T) {
	skills := two(t)
	for want, c := range map[string]struct {
		def  agent.Definition
		more []tool.Tool
	}{
		`skill "none" is not known; the worker has mine, pdf, ship`: {agent.Definition{Skills: []string{"none"}}, nil},
		`skill "pdf" is named twice`:                                {agent.Definition{Skills: []string{"pdf", "pdf"}}, nil},
		"is no name of a skill":                                     {agent.Definition{Skills: []string{"../pdf"}}, nil},
		"SkillMatcher is missing":                                   {agent.Definition{Skills: []string{"pdf"}, SkillMatch: &agent.SkillMatch{Strategy: "host"}}, nil},
		"top_n must be 1 to 8":                                      {agent.Definition{Skills: []string{"pdf"}, SkillMatch: &agent.SkillMatch{TopN: 9}}, nil},
		`the tool "skill" is the runtime's`:                         {agent.Definition{Skills: []string{"pdf"}}, []tool.Tool{tool.New("skill", "", func(context.Context, *tool.Call, struct{}) (string, error) { return "", nil }, nil)}},
	} {
		c.def.Name, c.def.Model = "a", "script"
		_, err := (&worker.Options{Agents: []agent.Definition{c.def}, Tools: c.more, Skills: skills, Models: map[string]model.Model{"script": testsuite.NewScript()}}).Components()
		require.ErrorContains(t, err, want)
	}
}
