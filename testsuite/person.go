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

// Person answers the requests of runs by rules. The first matching rule decides. A
// request that no rule matches stays open, for the test or for its deadline.
type Person struct {
	// By is who answers; empty means "person".
	By string
	// MaxReplies is the most answers of the person in one Env; one more fails the test.
	// Zero means no limit.
	MaxReplies int
	// Rules are tried in order.
	Rules []PersonRule
	// Model answers questions that no rule matches, as somebody who wants Goal; nil means
	// that they stay open.
	Model model.Model
	Goal  string

	mu        sync.Mutex
	decisions []PersonDecision
}

// personState is what a [Person] has done in one [Env].
type personState struct {
	person *Person
	asked  map[string]bool // requests that were decided about
	// Per Env, because a Person may be used by several.
	used    []int // how often each rule has answered
	answers int   // how many answers the person has given
}

// newState returns the state of a new Env; for a nil person it decides nothing.
func (p *Person) newState() *personState {
	v := &personState{person: p, asked: map[string]bool{}}
	if p != nil {
		v.used = make([]int, len(p.Rules))
	}
	return v
}

// PersonRule is what a [Person] does about a request. The first fields say which requests
// it matches; empty ones match everything. Exactly one of the others is required.
type PersonRule struct {
	Type  agent.RequestType
	Agent string
	Tool  string
	// Match is a regular expression for the request's text or the call's arguments.
	Match string
	// Times is how often the rule may be used; zero means always.
	Times int

	Approve bool
	// Arguments replace the model's arguments.
	Arguments json.RawMessage
	Reject    string // the reason
	Text      string // an answer
	// Choice answers with one of the request's choices.
	Choice string
	Data   json.RawMessage // a client tool's result
	// Ignore leaves the request open.
	Ignore bool
	// Stop ends the run with a handoff for that reason, instead of an answer.
	Stop string
	// Fail fails the test: this should not have been asked.
	Fail string
}

// PersonDecision is what a [Person] decided about a request.
type PersonDecision struct {
	Request agent.Request
	Command agent.Command // nil if the rule ignores the request
}

// Decide returns what the person does about a request, outside of an [Env]. used says how
// often each of the Rules has decided, and answered how many answers the person has given;
// nil and zero mean none. rule is the index of the rule that decided, or -1 if the Model
// did. Without a decision all are zero. A rule with Fail, and an answer beyond MaxReplies,
// are errors.
func (p *Person) Decide(q agent.Request, used []int, answered int) (decision *PersonDecision, rule int, err error) {
	if err := p.Check(); err != nil {
		return nil, 0, err
	}
	v := p.newState()
	copy(v.used, used)
	v.answers = answered
	before := slices.Clone(v.used)
	if decision, err = v.decide(q); err != nil || decision == nil {
		return nil, 0, err
	}
	for i, n := range v.used {
		if n != before[i] {
			return decision, i, nil
		}
	}
	return decision, -1, nil
}

// Check returns an error if a rule can't decide anything.
func (p *Person) Check() error {
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

// Decisions returns what the person decided, in order.
func (p *Person) Decisions() []PersonDecision {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.decisions)
}

// reactions decides about requests, each of them once.
// Once only: a request stays open until the run handles the answer.
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
		// Marked before the rules are tried, so a rule with Times is used up once.
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
			v.answers++
		}
		if _, stops := s.Command.(agent.StopCommand); stops {
			break // a stopping run takes no more answers
		}
	}
	return list, nil
}

// personRefused returns why an answer was refused. It ignores answers that came too late,
// because nobody needs them.
func personRefused(err error) error {
	if err == nil || errors.Is(err, agent.CodeClosed) || errors.Is(err, agent.CodeStale) {
		return nil
	}
	return fmt.Errorf("the person's answer was refused: %w", err)
}

// decide returns the decision of the first matching rule; nil if there is none.
func (v *personState) decide(q agent.Request) (*PersonDecision, error) {
	p := v.person
	for i, rule := range p.Rules {
		if !rule.fits(q) || rule.Times > 0 && v.used[i] >= rule.Times {
			continue
		}
		v.used[i]++
		if rule.Fail != "" {
			return nil, fmt.Errorf("session %s asked something that it must not ask (%s): %s", q.Session, rule.Fail, q.Text)
		}
		if rule.Choice != "" && !slices.Contains(q.Choices, rule.Choice) {
			return nil, fmt.Errorf("session %s asks %q, and the person's rule %d chooses %q, but the choices are %q", q.Session, q.Text, i+1, rule.Choice, q.Choices)
		}
		decision := &PersonDecision{Request: q, Command: rule.command(q, p.by())}
		if decision.Command == nil {
			return decision, nil
		}
		// A rule that ignores a request uses up no answer.
		return decision, v.exhausted(q)
	}
	if p.Model == nil || q.Type != agent.RequestQuestion {
		return nil, nil
	}
	if err := v.exhausted(q); err != nil {
		return nil, err
	}
	text, err := p.think(q)
	return &PersonDecision{Request: q, Command: agent.AnswerCommand{CommandHeader: agent.CommandHeader{By: p.by()}, Request: q.ID, Text: text}}, err
}

// exhausted returns an error if the person has used up its answers.
func (v *personState) exhausted(q agent.Request) error {
	p := v.person
	if p.MaxReplies == 0 || v.answers < p.MaxReplies {
		return nil
	}
	return fmt.Errorf("the person has given the %d answers that MaxReplies allows, and session %s asks again: %s", p.MaxReplies, q.Session, q.Text)
}

// think asks the model for an answer.
func (p *Person) think(q agent.Request) (string, error) {
	asked := q.Text
	if q.Context != "" {
		asked += "\n\n" + q.Context
	}
	if len(q.Choices) > 0 {
		asked += "\n\nChoose one of: " + strings.Join(q.Choices, ", ")
	}
	// Without the run's context: the person answers even while the run is cancelled.
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
		// Both texts, because a rule may be about the arguments only.
		tool, about = q.Call.Tool, q.Text+" "+string(q.Call.Arguments)
	}
	if r.Type != "" && r.Type != q.Type || r.Agent != "" && r.Agent != q.Agent || r.Tool != "" && r.Tool != tool {
		return false
	}
	return regexp.MustCompile(r.Match).MatchString(about)
}

// command returns the rule's command for the run.
func (r PersonRule) command(q agent.Request, by string) agent.Command {
	header := agent.CommandHeader{By: by}
	switch {
	case r.Ignore:
		return nil
	case r.Stop != "":
		return agent.StopCommand{CommandHeader: header, Reason: r.Stop}
	case r.Approve || len(r.Arguments) > 0:
		// The digest binds the approval to these arguments.
		return agent.ApproveCommand{CommandHeader: header, Request: q.ID, Digest: q.Digest, Arguments: r.Arguments}
	case r.Reject != "":
		return agent.RejectCommand{CommandHeader: header, Request: q.ID, Reason: r.Reject}
	case r.Choice != "":
		n := slices.Index(q.Choices, r.Choice)
		return agent.AnswerCommand{CommandHeader: header, Request: q.ID, Choice: &n}
	}
	return agent.AnswerCommand{CommandHeader: header, Request: q.ID, Text: r.Text, Data: r.Data}
}
