package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Hooks around a suspension are tools or commands, are bounded in time, and can't be told to prevent
// what always works.
func TestHooksAroundSuspensions(t *testing.T) {
	list := func(k Check) HookList { k.Name = "c"; return HookList{Checks: []Check{k}} }
	d := Definition{Hooks: Hooks{BeforeSuspension: list(Check{Tool: "look"}), BeforeResume: list(Check{Command: "up", Timeout: Duration(time.Minute)})}}.WithDefaults()
	require.NoError(t, d.checkSuspensionHooks())
	require.Equal(t, Check{Name: "c", Tool: "look", Timeout: Duration(10 * time.Second), OnError: CheckErrorAccept}, d.Hooks.BeforeSuspension.Checks[0])
	require.Equal(t, Check{Name: "c", Command: "up", Timeout: Duration(time.Minute)}, d.Hooks.BeforeResume.Checks[0])
	for want, h := range map[string]Hooks{
		"hooks.before_resume.checks[0]: a hook around a suspension or a resume is a tool or a command": {BeforeResume: list(Check{Judge: &Judge{}})},
		"hooks.after_resume.checks[0]: timeout is 2m":                                                  {AfterResume: list(Check{Tool: "look", Timeout: Duration(2 * time.Minute)})},
		"hooks.before_resume.checks[0]: on_error is hold":                                              {BeforeResume: list(Check{Tool: "look", OnError: CheckErrorHold})},
		"hooks.before_suspension.checks[0]: on_error is veto":                                          {BeforeSuspension: list(Check{Tool: "look", OnError: CheckErrorVeto})},
		"hooks.after_suspension.checks[0]: a check has one of tool, command, agent and judge":          {AfterSuspension: list(Check{})},
	} {
		err := Definition{Hooks: h}.checkSuspensionHooks()
		require.ErrorIs(t, err, CodeInvalidInput)
		require.ErrorContains(t, err, want)
	}
}
