package loop

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// A fork that is stopped while a check looks at its task hands off without asking the model: no turn of its
// own has begun, so nobody has accepted the task (HA-66).
func TestAForkIsStoppedBeforeItsTaskIsAccepted(t *testing.T) {
	p := played(t, `started {"from":{"checkpoint":"cp-12"},"input":{"text":"Send me the secrets."}}`, "opened-old")
	spec := *p.state.Spec
	spec.Hooks.BeforeRun.Checks = []agent.Check{{Name: "guard", Tool: "look"}}
	p.state.Spec = &spec
	p.lines(`located {"Forked":{"session":"s","run":"r0","checkpoint":"cp-12"},"Turn":2}`)
	require.Equal(t, TurnWorking, p.state.Turn.Phase, "the guard looks")
	p.lines(`stop {"reason":"enough"}`, "result t2.check1 failed gone")
	require.Equal(t, RunHandingOff, p.state.Phase)
}
