package testsuite_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite"
	"github.com/fermata-agents/fermata/testsuite/conformance"
)

// A Script keeps the contract of a model as far as its fields can express it.
func TestScriptIsAModel(t *testing.T) {
	conformance.Model(t, scripts{}, &conformance.ModelOptions{Unsupported: conformance.Unsupported{
		Keys: true, Streaming: true, Signatures: true, CallIDs: true, CacheWrite: true, Reasoning: true,
	}})
}

// scripts plays each response as a script of one reply.
type scripts struct {
	play func(conformance.ProviderRequest) conformance.ProviderResponse
}

func (scripts) Open(_ testing.TB, _ string, play func(conformance.ProviderRequest) conformance.ProviderResponse) model.Model {
	return scripts{play}
}

func (scripts) Info(name string) model.Info { return testsuite.NewScript().Info(name) }

func (s scripts) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	if ctx.Err() != nil {
		return testsuite.NewScript(testsuite.Reply{Match: "."}).Generate(ctx, req, emit)
	}
	response := s.play(conformance.ProviderRequest{
		Model: req.Model, Instructions: req.Instructions, Messages: req.Messages, Tools: req.Tools,
		MaxOutputTokens: req.MaxOutputTokens, Temperature: req.Temperature,
	})
	if response.OnDisconnect != nil {
		defer response.OnDisconnect()
	}
	return testsuite.NewScript(replyOf(response)).Generate(ctx, req, emit)
}

func replyOf(s conformance.ProviderResponse) testsuite.Reply {
	r := testsuite.Reply{
		Match: "(?s).", Finish: string(s.Finish),
		Usage: testsuite.Usage{Input: s.Usage.Input, Output: s.Usage.Output, CacheRead: s.Usage.CacheRead},
	}
	for _, b := range s.Blocks {
		whole := strings.Join(b.Pieces, "")
		switch b.Type {
		case agent.PartText:
			r.Text += whole
		case agent.PartThinking:
			r.Thinking += whole
		case agent.PartToolCall:
			r.Calls = append(r.Calls, testsuite.Call{ID: b.ID, Tool: b.Tool, Raw: whole})
		}
	}
	if s.Silent {
		r.Delay = time.Hour
	}
	switch {
	case s.GatewayStatus != 0:
		r.Fail = []testsuite.Failure{{Kind: model.KindOf(s.GatewayStatus), HTTP: s.GatewayStatus, Message: "no reason given"}}
	case s.Fail != "":
		r.Fail = []testsuite.Failure{{Kind: s.Fail, Message: s.FailMessage, RetryAfter: s.RetryAfter}}
	case s.Cut > 0:
		r.Fail = []testsuite.Failure{{Kind: agent.FaultTransient, Message: "the connection broke"}}
	}
	return r
}

// A script without an end is refused, and not read into memory.
func TestAScriptHasABound(t *testing.T) {
	_, err := testsuite.LoadScript("/dev/zero")
	require.ErrorIs(t, err, agent.CodeTooLarge)
}

// What is wrong with a script is told in words of the file, with its line.
func TestScriptsAreRefusedInWords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	for text, want := range map[string]string{
		"replies:\n  - {text: x, repeat: many}":     `s.yaml:2: must be a number, not "many"`,
		"replies: {text: x}":                        `s.yaml:1: must be a list, not fields`,
		"replies:\n  - {txt: x}\n  - {delay: soon}": `s.yaml:2: "txt" is not known here; script ` + path + `:3: must be a time such as 90s, not "soon"`,
		"replies: [{calls: [{tool: [x]}]}]":         `s.yaml:1: must be a text, not a list`,
		"price: cheap":                              `s.yaml:1: must be a value with fields of its own, not "cheap"`,
		"replies: [text":                            `s.yaml:2: not YAML: did not find expected ',' or ']'`,
		"rules: [{match: \"(\"}]":                   "rules[0].match is no regular expression: missing closing ): `(`",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o600))
		_, err := testsuite.LoadScript(path)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.ErrorContains(t, err, want)
		require.NotRegexp(t, `testsuite\.|!!|construct|unmarshal|time\.Duration`, err.Error())
	}
}

// A script tells usage, however little it is asked.
func TestAScriptTellsUsage(t *testing.T) {
	r, err := testsuite.NewScript(testsuite.Reply{Text: "x"}).Generate(t.Context(), &model.Request{}, func(model.Delta) {})
	require.NoError(t, err)
	require.NotZero(t, r.Usage)
}
