package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/memory"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/tool"
)

// remember makes a call of the tool memory. The memory is that of the run's agent, for whoever started
// the session: nothing that the model says chooses another one.
func (d *Activities) remember(ctx context.Context, in ToolInput, call *tool.Call) (text string, err error) {
	if in.Principal == "" {
		return "", tool.Refuse("You have no memory here: the agent that started you passes no principal to you. Do the task without the tool memory.")
	}
	m, err := d.Log.Memory(store.MemoryOwner{Principal: in.Principal, Agent: in.Agent})
	if err != nil {
		return "", err
	}
	// With the arguments: after a reset of the workflow, a call with this id may be another one.
	sum := sha256.Sum256(call.Arguments)
	key := call.Key + "/" + hex.EncodeToString(sum[:8])
	err = patiently(ctx, func() (err error) {
		text, err = memory.Run(ctx, m, call.Arguments, key, in.Session)
		return err
	})
	if code := agent.CodeOf(err); code == agent.CodeInvalidInput || code == agent.CodeTooLarge { // another attempt would fail, too
		return "", tool.Refuse("%s", messageOf(err))
	}
	return text, err
}
