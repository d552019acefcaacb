package evalrun

import (
	"context"
	"errors"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/excerpt"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/signals"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// The decisions of a person, beside the names of verbs.
const (
	decisionNone   = "none"
	decisionIgnore = "ignore"
	decisionFail   = "fail"
)

const (
	maxAnswers    = 100   // that a trial records
	maxAnswerText = 2_000 // bytes of an answer by a model
)

type decideInput struct {
	Person  *eval.Person  `json:"person,omitempty"`
	Request agent.Request `json:"request"`
	// Used says how often each rule has decided, and Answered how many answers were given.
	Used     []int `json:"used,omitempty"`
	Answered int   `json:"answered,omitempty"`
}

// decide decides about a request. It sends nothing, so a model is asked once for each
// answer, also if the worker is lost before the answer is sent.
func (s *steps) decide(_ context.Context, in decideInput) (a eval.Answer, err error) {
	a = eval.Answer{Session: in.Request.Session, Request: in.Request.ID, Decision: decisionNone}
	if in.Person == nil {
		return a, nil
	}
	m := &pricedModel{}
	if in.Person.Model != "" {
		if m.Model, m.own, err = grade.Resolve(s.o.Models, in.Person.Model); err != nil {
			return a, err
		}
	}
	did, rule, err := in.Person.Player(m.orNil()).Decide(in.Request, in.Used, in.Answered)
	a.Cost = m.cost
	var fault *agent.Error
	switch {
	case errors.As(err, &fault):
		return a, err // the model's
	case err != nil:
		a.Decision, a.Text = decisionFail, cut(err.Error())
		return a, nil
	case did == nil:
		return a, nil
	}
	a.Rule = rule + 1
	a.Decision, a.Text = decisionOf(did.Command)
	return a, nil
}

// decisionOf names a decision, and returns its text.
func decisionOf(c agent.Command) (decision, text string) {
	switch c := c.(type) {
	case agent.AnswerCommand:
		return "answer", cut(c.Text)
	case agent.ApproveCommand:
		return "approve", ""
	case agent.RejectCommand:
		return "reject", cut(c.Reason)
	case agent.StopCommand:
		return "stop", cut(c.Reason)
	}
	return decisionIgnore, ""
}

func cut(text string) string { return excerpt.Of(text, maxAnswerText, len(text)) }

type answerInput struct {
	Person  *eval.Person  `json:"person"`
	Request agent.Request `json:"request"`
	Answer  eval.Answer   `json:"answer"`
}

// answer sends an answer. It returns why the run refused it; empty if it did not, or if
// nobody needs the answer any more, as after a crash that came once it was sent.
func (s *steps) answer(ctx context.Context, in answerInput) (refused string, err error) {
	var command agent.Command = agent.AnswerCommand{CommandHeader: agent.CommandHeader{By: eval.By}, Request: in.Request.ID, Text: in.Answer.Text}
	if in.Answer.Rule > 0 {
		// Only the rule that decided, so that it decides again.
		one := *in.Person
		one.Rules = in.Person.Rules[in.Answer.Rule-1 : in.Answer.Rule]
		did, _, err := one.Player(nil).Decide(in.Request, nil, 0)
		if err != nil {
			return "", err
		}
		command = did.Command
	}
	_, err = signals.Update(ctx, s.o.Temporal, in.Request.Session, command)
	switch {
	case err == nil, errors.Is(err, agent.CodeClosed), errors.Is(err, agent.CodeStale):
		return "", nil
	// The answer itself can't be right: no later one would be.
	case errors.Is(err, agent.CodeInvalidInput), errors.Is(err, agent.CodeDenied), errors.Is(err, agent.CodeTooLarge):
		return cut(err.Error()), nil
	}
	return "", err
}

// pricedModel calls a model by its own name, and counts what that costs.
type pricedModel struct {
	model.Model
	own  string
	cost agent.USD
}

// orNil returns nil without a model: a typed nil would be asked.
func (m *pricedModel) orNil() model.Model {
	if m.Model == nil {
		return nil
	}
	return m
}

// Generate implements [model.Model].
func (m *pricedModel) Generate(ctx context.Context, r *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	named := *r
	named.Model = m.own
	reply, err := m.Model.Generate(ctx, &named, emit)
	if err == nil {
		m.cost += m.Info(m.own).Price.Of(model.ClampUsage(reply.Usage))
	}
	return reply, err
}
