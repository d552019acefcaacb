package eval

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// Suite is what is evaluated: cases, and what they have in common.
type Suite struct {
	// Name is part of the ids of its evaluations: lower-case letters, digits, '-' and '_'.
	Name string `json:"name"`
	// Agent is the agent or flow of all cases that name no other.
	Agent string `json:"agent,omitempty"`
	// Trials is how often each case is tried; zero means once.
	Trials int `json:"trials,omitempty"`
	// AtOnce is how many trials run at the same time; zero means 4.
	AtOnce int `json:"at_once,omitempty"`
	// PerMinute is how many trials begin in a minute; zero means any number.
	PerMinute int `json:"per_minute,omitempty"`
	// Timeout bounds a trial, with the time that its person takes; zero means 10 minutes.
	Timeout agent.Duration `json:"timeout,omitempty"`
	Budget  Budget         `json:"budget,omitzero"`
	// Limits may lower the limits of the agents, for each trial.
	Limits agent.Limits `json:"limits,omitzero"`
	// MinPassRate is the part of a case's trials that has to pass, from 0 to 1; nil means 1.
	MinPassRate *float64 `json:"min_pass_rate,omitempty"`
	// K are the numbers of trials for pass@k and pass^k; empty means 1 and Trials.
	K []int `json:"k,omitempty"`
	// Person answers what the trials ask, unless a case has a person of its own; nil answers
	// nothing.
	Person *Person `json:"person,omitempty"`
	// Graders grade the trials of all cases.
	Graders []grade.Spec `json:"graders,omitempty"`
	Cases   []Case       `json:"cases,omitempty"`
	// CasesFrom makes further cases of a data file; nil makes none. [Suite.ReadCases] reads it.
	CasesFrom *CasesFrom `json:"cases_from,omitempty"`
}

// Budget bounds an evaluation. What does not fit is left out. Zero fields are no bound.
type Budget struct {
	// CostUSD is what the runs, the judges and the persons may cost. It needs a known price of
	// each model, as every limit on cost does.
	CostUSD agent.USD `json:"cost_usd,omitempty"`
	// Time is how long the evaluation may take, also while no worker is there.
	Time agent.Duration `json:"time,omitempty"`
}

// Case is one task, and how to tell whether it was done well.
type Case struct {
	// Name is unique in the suite, and has the form of the suite's name.
	Name string `json:"name"`
	// Agent, Trials, Timeout, MinPassRate and Person replace those of the suite.
	Agent       string         `json:"agent,omitempty"`
	Trials      int            `json:"trials,omitempty"`
	Timeout     agent.Duration `json:"timeout,omitempty"`
	MinPassRate *float64       `json:"min_pass_rate,omitempty"`
	Person      *Person        `json:"person,omitempty"`
	// Input is the task: a text, or a value that becomes JSON.
	Input json.RawMessage `json:"input,omitempty"`
	// Files go along with the task. Paths are relative to the suite's file.
	Files []string `json:"files,omitempty"`
	// Graders grade beside those of the suite.
	Graders []grade.Spec `json:"graders,omitempty"`
	// Session is the recorded session that the case was made of; empty if it was written.
	Session string `json:"session,omitempty"`
}

// Person plays the user and the approvers, by rules. The first rule that matches decides.
// Questions that no rule matches go to Model; without one they stay open, and the trial
// ends suspended.
type Person struct {
	Rules []PersonRule `json:"rules,omitempty"`
	// Model is the full name of a model that answers as somebody who has the goal Goal.
	Model string `json:"model,omitempty"`
	Goal  string `json:"goal,omitempty"`
	// MaxReplies is how many answers the person gives in a trial; zero means 50.
	MaxReplies int `json:"max_replies,omitempty"`
}

// PersonRule is what a [Person] does about a request. The first fields say which requests
// it matches; empty ones match everything. Exactly one of the others is required.
type PersonRule struct {
	Type  agent.RequestType `json:"type,omitempty"`
	Agent string            `json:"agent,omitempty"`
	Tool  string            `json:"tool,omitempty"`
	// Match is a regular expression for the request's text or the call's arguments.
	Match string `json:"match,omitempty"`
	// Times is how often the rule may be used in a trial; zero means always.
	Times int `json:"times,omitempty"`

	Approve bool `json:"approve,omitempty"`
	// Arguments approve the call with other arguments.
	Arguments json.RawMessage `json:"arguments,omitempty"`
	// Reject is the reason for the model.
	Reject string `json:"reject,omitempty"`
	// Text, Choice and Data answer a question; Data also gives a client tool's result.
	Text   string          `json:"text,omitempty"`
	Choice string          `json:"choice,omitempty"`
	Data   json.RawMessage `json:"data,omitempty"`
	// Ignore leaves the request open.
	Ignore bool `json:"ignore,omitempty"`
	// Stop ends the run with a handoff.
	Stop string `json:"stop,omitempty"`
	// Fail fails the trial: this should not have been asked.
	Fail string `json:"fail,omitempty"`
}

// Defaults of a suite.
const (
	defaultTimeout    = agent.Duration(10 * time.Minute)
	defaultAtOnce     = 4
	defaultMaxReplies = 50
)

// Complete returns a case with what the suite says for all.
func (s *Suite) Complete(i int) Case {
	c := s.Cases[i]
	if c.Agent == "" {
		c.Agent = s.Agent
	}
	c.Trials = max(1, firstInt(c.Trials, s.Trials))
	if c.Timeout == 0 {
		c.Timeout = s.Timeout
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.MinPassRate == nil {
		c.MinPassRate = s.MinPassRate
	}
	if c.MinPassRate == nil {
		all := 1.0
		c.MinPassRate = &all
	}
	if c.Person == nil {
		c.Person = s.Person
	}
	c.Graders = append(append([]grade.Spec(nil), s.Graders...), c.Graders...)
	return c
}

func firstInt(list ...int) int {
	for _, n := range list {
		if n != 0 {
			return n
		}
	}
	return 0
}

// WithDefaults returns a copy of the suite that says how many trials run at the same time, and for how
// long. An evaluation is started with it, so a build with other defaults goes on as it began.
func (s *Suite) WithDefaults() *Suite {
	whole := *s
	whole.AtOnce = s.Parallel()
	if whole.Timeout == 0 {
		whole.Timeout = defaultTimeout
	}
	return &whole
}

// Parallel returns how many trials run at the same time.
func (s *Suite) Parallel() int { return firstInt(s.AtOnce, defaultAtOnce) }

// Total returns how many trials the suite has.
func (s *Suite) Total() (n int) {
	for i := range s.Cases {
		n += s.Complete(i).Trials
	}
	return n
}

// Task returns the case's task as the text that starts a run.
func (c *Case) Task() string {
	var text string
	if json.Unmarshal(c.Input, &text) == nil {
		return text
	}
	var plain bytes.Buffer
	if json.Compact(&plain, c.Input) != nil {
		return ""
	}
	return plain.String()
}

// Models lists the models of judges and persons, each once, in the order of the suite.
func (s *Suite) Models() (names []string) {
	seen := map[string]bool{"": true}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for i := range s.Cases {
		c := s.Complete(i)
		if c.Person != nil {
			add(c.Person.Model)
		}
		for _, g := range c.Graders {
			if g.Judge != nil {
				add(g.Judge.Model)
			}
		}
	}
	return names
}
