package flow_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/testsuite"
)

// draft is a state of a flow.
type draft struct {
	Title string         `json:"title"`
	Tags  []string       `json:"tags"`
	Notes map[string]int `json:"notes"`
}

// changed is what a flow's state is after the answers of a person.
func changed(t *testing.T, o *flow.AskOptions, answers ...string) (*testsuite.Rehearsal, []testsuite.RehearsedStep) {
	f := flow.New("edit", func(c flow.Context, _ string) (draft, error) {
		d := draft{Title: "May", Tags: []string{"a", "b"}, Notes: map[string]int{"a": 1, "b": 2}}
		err := flow.Overlay(c, "What is wrong?", &d, o)
		return d, err
	}, nil)
	var asked []testsuite.RehearsedStep
	return testsuite.Rehearse(t, f, "", func(s testsuite.RehearsedStep) (any, error) {
		asked = append(asked, s)
		return json.RawMessage(answers[len(asked)-1]), nil
	}), asked
}

// An answer replaces fields, whatever they hold, and the others stay.
func TestOverlay(t *testing.T) {
	for answer, want := range map[string]string{
		`{}`:                       `{"title":"May","tags":["a","b"],"notes":{"a":1,"b":2}}`,
		`{"tags":["c"]}`:           `{"title":"May","tags":["c"],"notes":{"a":1,"b":2}}`,
		`{"notes":{"c":3}}`:        `{"title":"May","tags":["a","b"],"notes":{"c":3}}`,
		`{"title":"","tags":null}`: `{"title":"","tags":null,"notes":{"a":1,"b":2}}`,
	} {
		r, asked := changed(t, nil, answer)
		require.NoError(t, r.Err)
		require.JSONEq(t, want, string(r.Output))
		require.Len(t, asked, 1)
		require.Contains(t, string(asked[0].Arguments), `\"title\":\"May\"`, "the person sees the state")
	}
}

// Fields that break the state's schema only together are asked for again.
func TestOverlayAsksAgain(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["title"],"if":{"properties":{"title":{"const":"June"}}},"then":{"properties":{"tags":{"maxItems":1}}}}`)
	r, asked := changed(t, &flow.AskOptions{Schema: schema, Context: "the draft"}, `{"title":"June"}`, `{"title":"June","tags":["c"]}`)
	require.NoError(t, r.Err)
	require.JSONEq(t, `{"title":"June","tags":["c"],"notes":{"a":1,"b":2}}`, string(r.Output))
	require.Equal(t, "ask_again", asked[1].Name)
	require.Contains(t, string(asked[1].Arguments), `"context":"the draft"`)

	r, _ = changed(t, &flow.AskOptions{Schema: json.RawMessage(`{"type":"string"}`)})
	require.ErrorIs(t, r.Err, agent.CodeInvalidInput)
	r, _ = changed(t, &flow.AskOptions{Choices: []string{`{"tags":7}`}})
	require.ErrorIs(t, r.Err, agent.CodeInvalidInput)
}
