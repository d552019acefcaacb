package testsuite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Person answers, by rules, what runs ask of people. The first rule that fits
// answers; what fits none is left open, for the test to answer or for its deadline.
type Person struct {
	// By is who answers; empty means "person".
	By string
	// MaxReplies is how often the person answers on a stage at most: one more fails the
	// test. Zero means without end.
	MaxReplies int
	// Rules are tried in order.
	Rules []PersonRule
	// Model answers questions that no rule is for, in the part of somebody who wants
	// Goal; nil means that nobody does.
	Model model.Model
	Goal  string

	mu        sync.Mutex
	decisions []PersonDecision
}

// personState is what a [Person] does on one [Env].
type personState struct {
	person *Person
	asked  map[string]bool // requests that were decided about
	used   []int           // how often each rule has answered
	spoken int             // how often the person has
}

// newState is the beginning of a visit; a nil person's is empty.
func (p *Person) newState() *personState {
	v := &personState{person: p, asked: map[string]bool{}}
	if p != nil {
		v.used = make([]int, len(p.Rules))
	}
	return v
}

// PersonRule is what a [Person] does when something is asked. The first fields say what
// it is for, and empty ones fit everything; of the others one is wanted.
type PersonRule struct {
	Type  agent.RequestType
	Agent string
	Tool  string
	// Match is a regular expression for the request's text, or the call's arguments.
	Match string
	// Times is how often it is for; zero means always.
	Times int

	Approve bool
	// Arguments replace the model's.
	Arguments json.RawMessage
	Reject    string // the reason
	Text      string // an answer
	// Choice answers with one of the request's choices.
	Choice string
	Data   json.RawMessage // a client tool's result
	// Ignore leaves the request open.
	Ignore bool
	// Stop ends the run, gracefully, for that reason, instead of an answer.
	Stop string
	// Fail fails the test: this was not to be asked.
	Fail string
}

// PersonDecision is what a [Person] did about a request.
type PersonDecision struct {
	Request agent.Request
	Command agent.Command // nil where it was ignored
}

// check refuses rules that cannot be meant.
func (p *Person) check() error {
	if p == nil {
		return nil
	}
	for i, r := range p.Rules {
		if n := r.decisions(); n != 1 {
			return fmt.Errorf("the person's rule %d has %d decisions; it needs exactly one: Approve, Arguments, Reject, Text, Choice, Data, Ignore, Stop or Fail", i+1, n)
		}
		if _, err := regexp.Compile(r.Match); err != nil {
			return fmt.Errorf("the person's rule %d: %w", i+1, err)
		}
	}
	return nil
}

func (r PersonRule) decisions() (n int) {
	for _, is := range []bool{r.Approve || len(r.Arguments) > 0, r.Reject != "", r.Text != "", r.Choice != "", len(r.Data) > 0, r.Ignore, r.Stop != "", r.Fail != ""} {
		if is {
			n++
		}
	}
	return n
}

// Decisions lists what the person did, in order.
func (p *Person) Decisions() []PersonDecision {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.decisions)
}

// reactions decides about requests, about each once.
func (v *personState) reactions(open []agent.Request) (list []PersonDecision, err error) {
	if v.person == nil {
		return nil, nil
	}
	v.person.mu.Lock()
	defer v.person.mu.Unlock()
	for _, q := range open {
		key := q.Session + " " + q.ID
		if v.asked[key] {
			continue
		}
		v.asked[key] = true
		s, err := v.decide(q)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		list, v.person.decisions = append(list, *s), append(v.person.decisions, *s)
		if s.Command != nil {
			v.spoken++
		}
		if _, stops := s.Command.(agent.StopCommand); stops {
			break // nothing is asked any more
		}
	}
	return list, nil
}

// personRefused is why what a person said was refused, except for what nobody asks any
// more: an answer that came too late.
func personRefused(err error) error {
	if err == nil || errors.Is(err, agent.CodeClosed) || errors.Is(err, agent.CodeStale) {
		return nil
	}
	return fmt.Errorf("what the person said was refused: %w", err)
}

// decide finds the rule for a request; nil if there is none.
func (v *personState) decide(q agent.Request) (*PersonDecision, error) {
	p := v.person
	for i, rule := range p.Rules {
		if !rule.fits(q) || rule.Times > 0 && v.used[i] >= rule.Times {
			continue
		}
		v.used[i]++
		if rule.Fail != "" {
			return nil, fmt.Errorf("session %s asked what was not to be asked (%s): %s", q.Session, rule.Fail, q.Text)
		}
		if rule.Choice != "" && !slices.Contains(q.Choices, rule.Choice) {
			return nil, fmt.Errorf("session %s asks %q, and the person's rule %d chooses %q, which is none of %q", q.Session, q.Text, i+1, rule.Choice, q.Choices)
		}
		said := &PersonDecision{Request: q, Command: rule.command(q, p.by())}
		if said.Command == nil {
			return said, nil
		}
		return said, v.tired(q)
	}
	if p.Model == nil || q.Type != agent.RequestQuestion {
		return nil, nil
	}
	if err := v.tired(q); err != nil {
		return nil, err
	}
	text, err := p.think(q)
	return &PersonDecision{Request: q, Command: agent.AnswerCommand{CommandHeader: agent.CommandHeader{By: p.by()}, Request: q.ID, Text: text}}, err
}

// tired is an error when the person has answered as often as it may.
func (v *personState) tired(q agent.Request) error {
	p := v.person
	if p.MaxReplies == 0 || v.spoken < p.MaxReplies {
		return nil
	}
	return fmt.Errorf("the person has answered %d times, as often as it may, and session %s asks again: %s", p.MaxReplies, q.Session, q.Text)
}

// think lets the model answer a question.
func (p *Person) think(q agent.Request) (string, error) {
	asked := q.Text
	if q.Context != "" {
		asked += "\n\n" + q.Context
	}
	if len(q.Choices) > 0 {
		asked += "\n\nChoose one of: " + strings.Join(q.Choices, ", ")
	}
	reply, err := p.Model.Generate(context.Background(), &model.Request{
		Instructions: "You are the person whom an assistant works for. What you want: " + p.Goal + " Answer its question with one short message and nothing else.",
		Messages:     []agent.Message{agent.TextMessage(agent.RoleUser, asked)},
	}, func(model.Delta) {})
	if err != nil {
		return "", fmt.Errorf("the person's model, asked %q: %w", q.Text, err)
	}
	return (agent.Message{Parts: reply.Parts}).Text(), nil
}

func (p *Person) by() string {
	if p.By == "" {
		return "person"
	}
	return p.By
}

func (r PersonRule) fits(q agent.Request) bool {
	tool, about := "", q.Text
	if q.Call != nil {
		tool, about = q.Call.Tool, q.Text+" "+string(q.Call.Arguments)
	}
	if r.Type != "" && r.Type != q.Type || r.Agent != "" && r.Agent != q.Agent || r.Tool != "" && r.Tool != tool {
		return false
	}
	return regexp.MustCompile(r.Match).MatchString(about)
}

// command is what the rule says to the run.
func (r PersonRule) command(q agent.Request, by string) agent.Command {
	said := agent.CommandHeader{By: by}
	switch {
	case r.Ignore:
		return nil
	case r.Stop != "":
		return agent.StopCommand{CommandHeader: said, Reason: r.Stop}
	case r.Approve || len(r.Arguments) > 0:
		return agent.ApproveCommand{CommandHeader: said, Request: q.ID, Digest: q.Digest, Arguments: r.Arguments}
	case r.Reject != "":
		return agent.RejectCommand{CommandHeader: said, Request: q.ID, Reason: r.Reject}
	case r.Choice != "":
		n := slices.Index(q.Choices, r.Choice)
		return agent.AnswerCommand{CommandHeader: said, Request: q.ID, Choice: &n}
	}
	return agent.AnswerCommand{CommandHeader: said, Request: q.ID, Text: r.Text, Data: r.Data}
}
