package loop

import (
	"encoding/json"
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// redaction stands for a secret argument where people look.
const redaction = "[secret]"

// redactedArguments returns a call's arguments as those who decide about it may see them.
func redactedArguments(arguments json.RawMessage, tool agent.ToolSpec) json.RawMessage {
	return replace(arguments, tool.Secrets, func(name string, old json.RawMessage) json.RawMessage {
		return json.RawMessage(`"` + redaction + `"`)
	})
}

// Redacted returns the arguments of a call of a tool without the tool's secrets.
func Redacted(arguments json.RawMessage, spec *agent.Spec, tool string) json.RawMessage {
	t, _ := spec.Tool(tool)
	return redactedArguments(arguments, t)
}

// unredacted puts the model's secrets back into arguments that a person edited without
// seeing them.
func unredacted(edited, original json.RawMessage, tool agent.ToolSpec) json.RawMessage {
	var was map[string]json.RawMessage
	if json.Unmarshal(original, &was) != nil {
		return edited
	}
	return replace(edited, tool.Secrets, func(name string, now json.RawMessage) json.RawMessage {
		var text string
		if secret, ok := was[name]; ok && json.Unmarshal(now, &text) == nil && text == redaction {
			return secret
		}
		return now
	})
}

// replace rewrites some members of a JSON object. Anything else is returned as it is.
func replace(object json.RawMessage, names []string, with func(string, json.RawMessage) json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if len(names) == 0 || json.Unmarshal(object, &members) != nil {
		return object
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if old, ok := members[name]; ok {
			members[name] = with(name, old)
		}
	}
	raw, err := json.Marshal(members) // with sorted keys: replays must write the same
	if err != nil {
		return object
	}
	return raw
}
