package loop

import "github.com/fermata-agents/fermata/agent"

// CallEnd says how a call ended that returned no result.
type CallEnd string

// The ends.
const (
	// CallNotFound means that no worker was found that has the tool.
	CallNotFound CallEnd = "not found"
	// CallNotBegun means that the call was cancelled before it began.
	CallNotBegun CallEnd = "not begun"
	// CallCutShort means that the call was begun, as far as anybody knows, and that nobody knows how far it
	// came: it was cancelled, ran out of time, or lost its worker.
	CallCutShort CallEnd = "cut short"
	// CallBroken means that the call failed with an error.
	CallBroken CallEnd = "broken"
)

// FailedCall returns what the model is shown of a call that returned no result. err may be nil for a
// call that never began.
func FailedCall(call, tool string, end CallEnd, err *agent.Error) ToolReturned {
	r := agent.ToolResult{Call: call, Tool: tool}
	switch end {
	case CallNotFound:
		r.Status, r.Text = agent.CallSkipped, "Not executed: no worker was found that has it."
	case CallNotBegun:
		r.Status, r.Text = agent.CallSkipped, "Not executed: it was cancelled before it began."
	case CallCutShort:
		r.Status, r.Text = agent.CallUnknown, "Unknown outcome: "+err.Message+". The call may or may not have had its effect; look before you make it again."
	case CallBroken:
		r.Status, r.Text = agent.CallFailed, err.Message
	}
	return ToolReturned{Result: r, FromRuntime: true}
}

// FilesNotCopied returns what a message has in place of files that could not be copied.
func FilesNotCopied(err *agent.Error) []agent.Part {
	return []agent.Part{{Type: agent.PartText, Text: "[the files could not be copied: " + string(err.Code) + "]"}}
}
