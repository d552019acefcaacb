package flow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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
		` { } `:                    `{"title":"May","tags":["a","b"],"notes":{"a":1,"b":2}}`,
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

// What others change while a person thinks stays, and so does what JSON does not show.
func TestOverlayLeavesTheRest(t *testing.T) {
	type state struct {
		Title, Note string
		Tags        []string
		Any         any
		own         int
	}
	f := flow.New("edit", func(c flow.Context, _ string) (string, error) {
		s := state{Title: "May", Any: int64(1) << 60, own: 7}
		err := flow.Parallel(c,
			flow.Branch{Name: "a", Do: func(c flow.Context) error { return flow.Overlay(c, "Title?", &s, nil) }},
			flow.Branch{Name: "b", Do: func(c flow.Context) error { return flow.Overlay(c, "Tags?", &s, nil) }})
		return fmt.Sprintf("%s %v %T %d", s.Title, s.Tags, s.Any, s.own), err
	}, nil)
	r := testsuite.Rehearse(t, f, "", func(one testsuite.RehearsedStep) (any, error) {
		return json.RawMessage(map[string]string{"branch.a/ask": `{"Title":"June"}`, "branch.b/ask": `{"Tags":["b"]}`}[one.Path]), nil
	})
	require.NoError(t, r.Err)
	require.Equal(t, "June [b] int64 7", r.Text)
}

// A state that no answer can name fields of is refused, and a long one is shown in part.
func TestStatesOfOverlay(t *testing.T) {
	ask := func(do func(flow.Context) error) (*testsuite.Rehearsal, []testsuite.RehearsedStep) {
		r := testsuite.Rehearse(t, flow.New("edit", func(c flow.Context, _ string) (string, error) { return "", do(c) }, nil), "", func(testsuite.RehearsedStep) (any, error) {
			return json.RawMessage(`{}`), nil
		})
		return r, r.Steps
	}
	for _, do := range []func(flow.Context) error{
		func(c flow.Context) error { return flow.Overlay[draft](c, "?", nil, nil) },
		func(c flow.Context) error { return flow.Overlay(c, "?", new(json.RawMessage), nil) },
		func(c flow.Context) error { return flow.Overlay(c, "?", new(any), nil) },
		func(c flow.Context) error { return flow.Overlay(c, "?", new(struct{ *draft }), nil) },
		func(c flow.Context) error {
			return flow.Overlay(c, "?", new(draft), &flow.AskOptions{Default: `{"titel":"x"}`})
		},
	} {
		r, _ := ask(do)
		require.ErrorIs(t, r.Err, agent.CodeInvalidInput)
	}
	m := map[string]int{"a": 1}
	_, steps := ask(func(c flow.Context) error {
		return flow.Overlay(c, "?", &draft{Title: strings.Repeat("ü", 5000)}, nil)
	})
	require.Less(t, len(steps[0].Arguments), 5000)
	r := testsuite.Rehearse(t, flow.New("edit", func(c flow.Context, _ string) (string, error) { return "", flow.Overlay(c, "?", &m, nil) }, nil), "", func(testsuite.RehearsedStep) (any, error) {
		return json.RawMessage(`{"b":2}`), nil
	})
	require.NoError(t, r.Err)
	require.Equal(t, map[string]int{"a": 1, "b": 2}, m)
}

// narrow takes no text that is long.
type narrow string

func (n *narrow) UnmarshalText(text []byte) error {
	if len(text) > 3 {
		return errors.New("it is too long")
	}
	*n = narrow(text)
	return nil
}

// A default would come again and again. So one that can't be used is an error of the step: the default's
// fields can't be put into the state, or the changed state does not fit (OA-109).
func TestDefaultsThatOverlayCannotUse(t *testing.T) {
	for _, c := range []struct {
		o    flow.AskOptions
		code agent.Code
	}{
		{flow.AskOptions{Default: `{"title":"much too long"}`}, agent.CodeJoinFailed},
		{flow.AskOptions{Default: `{"title":"b"}`, Schema: json.RawMessage(`{"type":"object","not":{"properties":{"title":{"const":"b"}}}}`)}, agent.CodeBadOutput},
	} {
		state := map[string]narrow{"title": "a"}
		r := testsuite.Rehearse(t, flow.New("edit", func(f flow.Context, _ string) (string, error) { return "", flow.Overlay(f, "?", &state, &c.o) }, nil), "", func(testsuite.RehearsedStep) (any, error) {
			return json.RawMessage(c.o.Default), nil
		})
		var e *agent.Error
		require.ErrorAs(t, r.Err, &e)
		require.Equal(t, c.code, e.Code, e.Message)
		require.Equal(t, "ask", e.Path)
		require.Equal(t, map[string]narrow{"title": "a"}, state)
	}
}

// Fields that break the state's schema only together are asked for again (OA-43), and so is a
// field that the state does not have, which is never stored (OA-45).
func TestOverlayAsksAgain(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["title"],"if":{"properties":{"title":{"const":"June"}}},"then":{"properties":{"tags":{"maxItems":1}}}}`)
	r, asked := changed(t, &flow.AskOptions{Schema: schema, Context: "the draft"}, `{"title":"June"}`, `{"title":"June","tags":["c"]}`)
	require.NoError(t, r.Err)
	require.JSONEq(t, `{"title":"June","tags":["c"],"notes":{"a":1,"b":2}}`, string(r.Output))
	require.Equal(t, "ask_again", asked[1].Name)
	require.Contains(t, string(asked[1].Arguments), `"context":"the draft"`)

	// A part of a state need not fit what the whole has to; and another case is another field.
	schema = json.RawMessage(`{"type":"object","minProperties":2,"allOf":[{"required":["title"]}]}`)
	r, asked = changed(t, &flow.AskOptions{Schema: schema}, `{"Tags":["x"]}`, `{"tags":["c"]}`)
	require.NoError(t, r.Err)
	require.JSONEq(t, `{"title":"May","tags":["c"],"notes":{"a":1,"b":2}}`, string(r.Output))
	require.Len(t, asked, 2)

	r, _ = changed(t, &flow.AskOptions{Schema: json.RawMessage(`{"type":"string"}`)})
	require.ErrorIs(t, r.Err, agent.CodeInvalidInput)
	r, _ = changed(t, &flow.AskOptions{Choices: []string{`{"tags":7}`}})
	require.ErrorIs(t, r.Err, agent.CodeInvalidInput)
}
