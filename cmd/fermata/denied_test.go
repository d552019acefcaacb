package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/tool"
)

// Whoever waits for a pause learns that a hook has denied it, whether the run still works or has ended
// since.
func TestAPauseThatAHookDenies(t *testing.T) {
	slow, dug := dig()
	quiet := tool.New("quiet", "looks for open payments", func(context.Context, *tool.Call, agent.SuspensionHook) (agent.Verdict, error) {
		return agent.Verdict{Decision: agent.DecisionVeto, Reasoning: "a payment is open"}, nil
	}, &tool.Options{ReadOnly: true})
	digger := func(name string, last testsuite.Reply) role {
		return role{agent.Definition{Name: name, Tools: []string{"dig"}, Hooks: agent.Hooks{
			BeforeSuspension: agent.HookList{Checks: []agent.Check{{Name: "quiet", Tool: "quiet"}}},
		}}, []testsuite.Reply{calls("dig", nil), last}}
	}
	s := scripted(t, digger("slow", testsuite.Reply{Text: "never", Delay: time.Hour}), digger("quick", testsuite.Reply{Text: "Dug."})).works(slow, quiet)
	for _, name := range []string{"slow", "quick"} {
		run := s.begin(name, name, nil)
		s.does(run, agent.InFlightTool)
		d := s.sits("pause", run.Session, "--wait")
		d.sees(run.Session + ": pause accepted, it is suspending (s-1)")
		dug()
		require.Contains(t, d.ends(agent.CodeDenied.ExitStatus()).err, "[denied] waiting for session "+run.Session+": the hook quiet denied the pause (s-1), and the run goes on: a payment is open")
	}
}
