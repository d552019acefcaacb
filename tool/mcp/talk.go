package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// roundsProtocol is the first protocol in which a server asks by answering a call.
const roundsProtocol = "2026-07-28"

// How a call continues after people have answered.
const (
	byRound  = "round"  // it is made again with the answers and the server's state
	byVisit  = "visit"  // it is made again: somebody had to open a page first
	byReplay = "replay" // it is made again, and the server asks again
)

// kept is what a call keeps while people are asked, as the state of its questions.
type kept struct {
	How string `json:"how"`
	// Wants are asked together, one after the other. Before is how many answers the call
	// had when it began to ask them.
	Wants  []want `json:"wants,omitempty"`
	Before int    `json:"before,omitempty"`
	// State is the server's own state of a round.
	State string `json:"state,omitempty"`
	// Asked has for each answer of a replay the digest of its question.
	Asked []string `json:"asked,omitempty"`
	// Round is what the call continues with after a page, if it already had the answers
	// of a round.
	Round *kept `json:"round,omitempty"`
	// Visited are the pages that people said they have opened.
	Visited []string `json:"visited,omitempty"`
}

// talk is a call with the questions and answers so far.
type talk struct {
	*tool.Call
	server    *Server
	answers   []agent.ToolAnswer
	kept      kept
	responses sdk.InputResponseMap // of a round whose questions are all answered
	visited   []string             // see kept
}

// resume continues where a call was when it asked. If its round has more questions,
// resume asks the next one, which needs no server; the error is then [tool.ErrAsked].
func (s *Server) resume(ctx context.Context, c *tool.Call) (*talk, error) {
	t := &talk{Call: c, server: s, answers: c.Answers()}
	if len(t.answers) == 0 {
		return t, nil
	}
	if err := json.Unmarshal(t.answers[len(t.answers)-1].State, &t.kept); err != nil || !t.kept.fits(len(t.answers)) {
		return nil, agent.Errorf(agent.CodeIncompatible, "what the call kept with its question can't be read; nothing was done since it asked")
	}
	t.visited = t.kept.Visited
	// A replay needs no answers yet: the server asks again, and known finds them.
	if t.kept.How == byReplay {
		return t, nil
	}
	if err := t.take(ctx); err != nil || t.kept.Round == nil {
		return t, err
	}
	t.kept = *t.kept.Round
	return t, t.take(ctx)
}

// fits reports whether the kept state belongs to a call with so many answers.
func (k kept) fits(answers int) bool {
	return k.Before >= 0 && k.Before <= answers && (k.Round == nil || k.Round.fits(k.Before))
}

// take matches the answers to the questions, and asks the first one without an answer.
func (t *talk) take(ctx context.Context) error {
	t.responses = sdk.InputResponseMap{}
	i, wrong := 0, ""
	for _, a := range t.answers[t.kept.Before:] {
		if i == len(t.kept.Wants) {
			break
		}
		w := t.kept.Wants[i]
		var result *sdk.ElicitResult
		if result, wrong = w.answered(a); wrong != "" {
			continue
		}
		if t.kept.How == byVisit && result.Action != actAccept {
			return fmt.Errorf("the MCP server %s needs a person to open a page first, and they did not: nothing was done", t.server.name)
		}
		if w.State != "" {
			var err error
			if wrong, err = t.signsIn(ctx, w, a); err != nil {
				return err
			}
			if wrong != "" {
				continue
			}
		} else if t.kept.How == byVisit {
			t.visited = union(t.visited, []string{w.page()})
		}
		t.responses[w.ID] = result
		i++
	}
	// An invalid answer also leaves a question open, which is then asked again.
	if i < len(t.kept.Wants) {
		return t.ask(t.kept, t.kept.Wants[i], wrong)
	}
	return nil
}

// asked asks a person if a call ended in a question instead of a result; nil if it did
// not. The error is [tool.ErrAsked], or says why nobody is asked.
func (t *talk) asked(l *link, result *sdk.CallToolResult, again *replay, err error) error {
	switch {
	case err != nil:
		return cmp.Or(again.asks(), t.visit(err))
	case l.rounds() && len(result.InputRequests) > 0:
		return t.round(result)
	}
	return nil
}

// fill adds to a call's parameters the answers of the round.
func (t *talk) fill(l *link, params *sdk.CallToolParams) error {
	if t.kept.How != byRound {
		return nil
	}
	if !l.rounds() {
		return tool.Refuse("the MCP server %s no longer speaks the protocol in which it asked; the call can't continue", t.server.name)
	}
	params.InputResponses, params.RequestState = t.responses, t.kept.State
	return nil
}

// round asks what a server wants instead of a result.
func (t *talk) round(r *sdk.CallToolResult) error {
	var wants []want
	for _, id := range slices.Sorted(maps.Keys(r.InputRequests)) {
		p, ok := r.InputRequests[id].(*sdk.ElicitParams)
		if !ok {
			return fmt.Errorf("the MCP server %s asks for something that it was not offered, so no person is asked; the call can't continue", t.server.name)
		}
		w, err := t.server.wantOf(id, p)
		if err != nil {
			return fmt.Errorf("the MCP server %s can't ask a person: %w", t.server.name, err)
		}
		wants = append(wants, w)
	}
	return t.all(kept{How: byRound, Wants: wants, State: r.RequestState})
}

// visit asks people to open the pages that a server answered a call with. It returns nil
// if the answer is another, or names no page. No page is asked for twice: somebody said
// that they opened it, and asking again would change nothing.
func (t *talk) visit(err error) error {
	var pages struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	wire := answered(err)
	if wire == nil || wire.Code != sdk.CodeURLElicitationRequired || json.Unmarshal(wire.Data, &pages) != nil {
		return nil
	}
	var wants []want
	for _, p := range pages.Elicitations {
		w, err := t.server.wantOf("", p)
		if err != nil || w.URL == "" {
			return nil
		}
		wants = append(wants, w)
	}
	if len(wants) == 0 {
		return nil
	}
	if !slices.ContainsFunc(wants, func(w want) bool { return !slices.Contains(t.visited, w.page()) }) {
		return tool.Refuse("the MCP server %s still needs a person to open the page at %s, though somebody says that they have; nothing was done", t.server.name, wants[0].host())
	}
	k := kept{How: byVisit, Wants: wants, Asked: t.kept.Asked}
	if t.kept.How == byRound {
		k.Round = &t.kept
	}
	return t.all(k)
}

// all asks the first of several questions, and keeps the others.
func (t *talk) all(k kept) error {
	k.Before = len(t.answers)
	if n := k.Before + len(k.Wants); n > tool.MaxAsks {
		return fmt.Errorf("the MCP server %s asks %d questions in one call, but at most %d are allowed; the call can't continue", t.server.name, n, tool.MaxAsks)
	}
	return t.ask(k, k.Wants[0], "")
}

func (t *talk) ask(k kept, w want, wrong string) error {
	k.Visited = t.visited
	state, err := json.Marshal(k)
	if err != nil {
		return err
	}
	q := w.question(t.server.name, wrong)
	q.State = state
	if _, err = t.Ask(q); errors.Is(err, tool.ErrAsked) {
		return tool.ErrAsked
	}
	return fmt.Errorf("the MCP server %s can't ask a person: %w", t.server.name, err)
}

// rounds reports whether the server speaks a protocol in which it asks by answering.
func (l *link) rounds() bool { return l.session.InitializeResult().ProtocolVersion >= roundsProtocol }

// unfit is the error that the server gets for a question that can't be asked.
func unfit(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
}
