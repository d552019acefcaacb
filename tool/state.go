package tool

import (
	"context"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
)

// Key names a value of the session's state. Tools keep values there for each other, over
// the turns and runs of a session. The state belongs to the conversation: a run that
// begins at an earlier checkpoint has the state of that checkpoint, and one that begins
// with carry: reset has none. The model does not see it.
//
// A call sees the state as it was when its turn began, and what it has set itself. What a
// call sets is visible after the turn's end, if the call succeeded. If two calls of a
// turn set one key, the later call wins.
type Key[T any] string

// MaxState is the most that one call may set, in bytes of keys and JSON.
const MaxState = 64 << 10

// Get returns the key's value; ok is false if it is not set. Errors are those of reading
// the session's log, and [agent.CodeIncompatible] if the value has another type.
func (k Key[T]) Get(ctx context.Context, c *Call) (value T, ok bool, err error) {
	h := c.connected()
	// The call sees its own changes before the turn's end.
	raw, ok := h.StateChanges[string(k)]
	if !ok && h.State != nil {
		state, err := h.State(ctx)
		if err != nil {
			return value, false, err
		}
		raw = state[string(k)]
	}
	// A deleted key is a null in the changes.
	if len(raw) == 0 || string(raw) == "null" {
		return value, false, nil
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return value, false, agent.Errorf(agent.CodeIncompatible, "the session's state %q is no %T: %w", string(k), value, err)
	}
	return value, true, nil
}

// Set sets the key, once the call has succeeded. It returns [agent.CodeInvalidInput] if
// the value does not encode to JSON, and [agent.CodeTooLarge] if the call sets more than
// [MaxState].
func (k Key[T]) Set(c *Call, value T) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the session's state %q can't be written as JSON: %w", string(k), err)
	}
	return c.put(string(k), raw)
}

// Delete deletes the key, once the call has succeeded.
func (k Key[T]) Delete(c *Call) error { return c.put(string(k), json.RawMessage("null")) }

func (c *Call) put(key string, raw json.RawMessage) error {
	h := c.connected()
	size := len(key) + len(raw)
	// The key's old value does not count, since the new one replaces it.
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
