package agentsfile_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/agentsfile"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
)

var placed = regexp.MustCompile(`^fermata\.yaml(?::(\d+))?: `)

// Whatever stands in an agents file, all that is wrong is told with its line, or
// every agent in it can be started.
func FuzzLoad(f *testing.F) {
	f.Chdir(f.TempDir())
	for _, text := range []string{
		"", "- a\n", "agents: {}\n", "agents:\n  a:\n    model: anthropic/claude-opus-5\n", "agents:\n  a: &a\n    model: openai/gpt-5\n    output: *a\n",
		"agents:\n  a:\n    model: m\n    tools: [fs_read, ask_user, 'mcp:t']\n    limits: {turns: 3, cost_usd: 1.5, wall_clock: 5m}\n    rules: [{do: ask, tools: [fs_read], remind: 1h}]\nmodels:\n  m: {provider: openai, model: llama, base_url: 'http://localhost/v1', price: {input: 1, output: 2}}\nmcp:\n  t: {command: [tickets], env: {A: b}}\nworkspace: .\n",
		"agents:\n  a:\n    model: openai/gpt-5\n    client_tools: [{name: camera, input: {type: object}}]\n    agents: [{agent: b}]\n    daemon: {every: 5m}\n  b: {model: openai/gpt-5, output: {type: object, properties: {x: {type: string}}}}\n",
		"agents:\n  a:\n    <<: {model: x}\n    instructions: !secret |\n      x\n", "a: &a [*a]\n", "agents:\n  ? [x]\n  : {}\n", "agents:\n  a:\n    limits: {turns: .nan, cost_usd: 1e400}\n",
		"agents:\n  a:\n    model: openai/gpt-5\n    rules: [{do: ask, arguments: {type: object, properties: {n: {$ref: '#/$defs/n'}}, $defs: {n: {minimum: 3}}}}]\n    output: {$ref: '#'}\n",
		"agents:\n  a: {model: openai/gpt-5, client_tools: [{name: c, input: {anyOf: [{$Ref: '#'}]}}], agents: [{agent: b, output: {not: {$ref: '#/not'}}}]}\n  b: {model: openai/gpt-5}\n",
		"agents: {a: {model: local/llama, fallbacks: [openai/gpt-5, local], tools: [fs_raed], ceiling: ['fs_*', x], limits: {cost_usd: 1}}}\nmodels:\n  local: {provider: openai, base_url: 'http://[::1', api: chat, key_env: K}\n  b: {provider: nobody}\nworkspace: ./none\n",
		"agents: {a: {model: openai/gpt-5, tools: ['mcp:t']}}\nmcp: {t: {url: 'https://example.com/mcp', headers: {Authorization: 'Bearer ${T}'}, resources: true}, u: {url: 'http://x', plain: true, headers: {'': '${'}}}\n",
		"agents: {a: {model: openai/gpt-5}}\nflows:\n  f:\n    steps:\n      - {agent: a, task: \"${input.x}\", if: {a.b: true}}\n      - {parallel: [{}, {name: x}, {steps: []}], ask: x}\n      - {map: {over: 7, as: f, steps: [{repeat: {steps: [{choose: []}]}}]}}\n  g: {steps: [{wait: {}}, {fail: \"${\"}], result: [\"${wait.topic.0}\"]}\n  a: {}\n",
		"agents:\n\ta: 1\n", "agents: {a: {model: [x}\n", "agents: {a: {limits: {wall_clock: soon, turns: 1.5}, model: openai/gpt-5, model: b}, b: 3}\nnobody: 1\nmcp: {t: {command: [], url: 'http://x'}, t: {}}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if strings.Contains(string(text), "/") && strings.Contains(string(text), "script") {
			return // a script may be any file of the machine
		}
		require.NoError(t, os.WriteFile(agentsfile.DefaultName, text, 0o600))
		file, err := agentsfile.Load(t.Context(), agentsfile.DefaultName)
		if err != nil {
			told(t, err, strings.Count(string(text), "\n")+1)
			return
		}
		require.True(t, filepath.IsAbs(file.Dir))
		require.NotEmpty(t, file.Agents)
		for _, def := range file.Agents {
			require.NoError(t, def.Check())
			found, err := file.Agent(def.Name)
			require.NoError(t, err)
			require.Equal(t, def.Name, found.Name)
			held(t, def)
			for _, name := range def.Models() {
				file.Priced(name)
			}
		}
	})
}

// held holds values to the schemas of an agent, as a run does.
func held(t *testing.T, def agent.Definition) {
	for _, value := range []string{`{}`, `{"a":{"n":1}}`, `[1,"a"]`, `"x"`} {
		for _, rule := range def.Rules {
			_, err := signals.Matches(rule.Arguments, json.RawMessage(value))
			require.NoError(t, err)
		}
		for _, tool := range def.ClientTools {
			_, err := signals.Matches(tool.Input, json.RawMessage(value))
			require.NoError(t, err)
		}
		if len(def.Output) > 0 {
			model.Fits(def.Output, json.RawMessage(value))
		}
	}
}

// told checks faults: each has a code, and a line that the file has.
func told(t *testing.T, err error, lines int) {
	list := []error{err}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		list = many.Unwrap()
	}
	for _, one := range list {
		var fault *agent.Error
		require.True(t, errors.As(one, &fault), "%v", one)
		require.NotEqual(t, agent.CodeInternal, fault.Code, "%v", one)
		at := placed.FindStringSubmatch(one.Error())
		require.NotNil(t, at, "%q does not say where", one)
		if at[1] != "" {
			line, err := strconv.Atoi(at[1])
			require.NoError(t, err)
			require.True(t, line >= 1 && line <= lines+1, "line %d of %d: %v", line, lines, one)
		}
	}
}
