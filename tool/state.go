package tool

import (
	"context"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Key names a value of the session's state: what tools keep for each other over
// the turns and runs of a session. It goes with the conversation: a run that
// begins behind an earlier checkpoint finds the state of that point, and one that
// begins anew finds none. The model does not see it.
//
// A call finds the state as it was when its turn began, and what it has set
// itself. What calls have set counts from the turn's end on, if they succeeded; of
// two that set one key the later call of the turn does.
type Key[T any] string

// MaxState is how much one call may set, in bytes of keys and JSON.
const MaxState = 64 << 10

// Get reads the key; ok is false where it is not set. Its errors are those of
// reading the session's log, and [agent.CodeIncompatible] for a value of another type.
func (k Key[T]) Get(ctx context.Context, c *Call) (value T, ok bool, err error) {
	h := c.connected()
	raw, ok := h.StateChanges[string(k)]
	if !ok && h.State != nil {
		state, err := h.State(ctx)
		if err != nil {
			return value, false, err
		}
		raw = state[string(k)]
	}
	if len(raw) == 0 || string(raw) == "null" {
		return value, false, nil
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, false, agent.Errorf(agent.CodeIncompatible, "the session's state %q is no %T: %w", string(k), value, err)
	}
	return value, true, nil
}

// Set sets the key when the call has succeeded. A value that is no JSON is
// [agent.CodeInvalidInput], one call that sets more than [MaxState] is [agent.CodeTooLarge].
func (k Key[T]) Set(c *Call, value T) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the session's state %q can't be written as JSON: %w", string(k), err)
	}
	return c.put(string(k), raw)
}

// Delete takes the key away when the call has succeeded.
func (k Key[T]) Delete(c *Call) error { return c.put(string(k), json.RawMessage("null")) }

func (c *Call) put(key string, raw json.RawMessage) error {
	h := c.connected()
	size := len(key) + len(raw)
	for k, v := range h.StateChanges {
		if k != key {
			size += len(k) + len(v)
		}
	}
	if size > MaxState {
		return agent.Errorf(agent.CodeTooLarge, "the call sets %d bytes of the session's state; at most %d are taken", size, MaxState)
	}
	if h.StateChanges == nil {
		h.StateChanges = map[string]json.RawMessage{}
	}
	h.StateChanges[key] = raw
	return nil
}
