package signals

import (
	"strconv"

	"github.com/fermata-agents/fermata/agent"
)

// CursorSeq returns the number of the event that a cursor names; 0 for the empty cursor,
// the beginning of the log. For anything else it returns [agent.CodeInvalidInput], with
// the path "after".
func CursorSeq(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	seq, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || seq < 0 || agent.Cursor(seq) != cursor {
		return 0, agent.Errorf(agent.CodeInvalidInput, "after: %q is no cursor; a cursor is that of an event, such as \"118\", and none is the beginning", cursor).WithPath("after")
	}
	return seq, nil
}

// CursorBeyondEnd returns the error for a cursor beyond a log's last event:
// [agent.CodeInvalidInput], with the path "after".
func CursorBeyondEnd(after, last int64) *agent.Error {
	return agent.Errorf(agent.CodeInvalidInput, "after: the log's last event has the cursor %q, and %q is beyond it: is it the cursor of another session?", agent.Cursor(last), agent.Cursor(after)).WithPath("after")
}
