package eval

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// Bounds of a suite.
const (
	MaxSuite   = 512 << 10 // bytes of its file
	MaxTrials  = 1_000     // of all cases together
	maxCases   = 500
	maxGraders = 20 // of a case, with those of the suite
	maxFiles   = 10 // of a case
	maxRules   = 100
	maxAtOnce  = 100
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// Read reads a suite in YAML, strictly: a misspelt key would grade nothing. Errors are
// [agent.CodeInvalidInput] or [agent.CodeTooLarge], and name the place. A suite with
// cases_from needs [Suite.ReadCases] before it is evaluated.
func Read(text []byte) (*Suite, error) {
	if len(text) > MaxSuite {
		return nil, agent.Errorf(agent.CodeTooLarge, "the suite has %d bytes, and %d are allowed", len(text), MaxSuite)
	}
	// YAML becomes JSON, because the strict decoder reads JSON.
	var written any
	if err := yaml.Unmarshal(text, &written); err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "not YAML: %w", err)
	}
	if written == nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the suite is empty: write name, agent and cases")
	}
	raw, err := json.Marshal(written)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "not a suite: %w", err)
	}
	s := &Suite{}
	if err := durable.Decode(raw, s, MaxSuite); err != nil {
		return nil, err
	}
	// Its cases are checked when they are read.
	if s.CasesFrom != nil && len(s.Cases) == 0 {
		return s, nil
	}
	checked := *s
	checked.CasesFrom = nil
	if err := checked.Check(); err != nil {
		return nil, err
	}
	return s, nil
}

// Check returns an [agent.CodeInvalidInput] error that names what can't be evaluated.
func (s *Suite) Check() error {
	switch {
	case !nameForm.MatchString(s.Name):
		return fault("name", "is %.60q; use 1 to 40 lower-case letters, digits, '-' and '_'", s.Name)
	case s.CasesFrom != nil:
		return fault("cases_from", "is not read yet: Suite.ReadCases does that")
	case len(s.Cases) == 0:
		return fault("cases", "is missing: write a list of cases, each with name, input and graders, or cases_from")
	case len(s.Cases) > maxCases:
		return fault("cases", "has %d cases, and %d are allowed", len(s.Cases), maxCases)
	case s.AtOnce < 0 || s.AtOnce > maxAtOnce:
		return fault("at_once", "is %d; it may be 1 to %d", s.AtOnce, maxAtOnce)
	case s.PerMinute < 0:
		return fault("per_minute", "is negative")
	case s.Budget.CostUSD < 0 || s.Budget.Time < 0:
		return fault("budget", "is negative")
	case s.Timeout < 0:
		return fault("timeout", "is negative")
	}
	if err := s.Limits.Check(); err != nil {
		return fault("limits", "%w", err)
	}
	if i := slices.IndexFunc(s.K, func(k int) bool { return k < 1 }); i >= 0 {
		return fault("k", "has %d; k is a list of numbers of trials for pass@k, such as [1, 5], each 1 or more", s.K[i])
	}
	names := map[string]bool{}
	for i := range s.Cases {
		at, c := fmt.Sprintf("cases[%d]", i), s.Complete(i)
		if names[c.Name] {
			return fault(at+".name", "is %s, as that of a case before it", c.Name)
		}
		names[c.Name] = true
		if err := c.check(at); err != nil {
			return err
		}
	}
	// Bounded one by one above: the sum can't overflow.
	if n := s.Total(); n > MaxTrials {
		return fault("trials", "makes %d trials of all cases, and %d are allowed", n, MaxTrials)
	}
	return nil
}

func fault(path, format string, args ...any) error {
	return agent.Errorf(agent.CodeInvalidInput, "%s %w", path, fmt.Errorf(format, args...)).WithPath(path)
}

// check checks a complete case.
func (c *Case) check(at string) error {
	switch {
	case !nameForm.MatchString(c.Name):
		return fault(at+".name", "is %.60q; use 1 to 40 lower-case letters, digits, '-' and '_'", c.Name)
	case c.Trials < 0 || c.Trials > MaxTrials:
		return fault(at+".trials", "is %d; it may be 1 to %d", c.Trials, MaxTrials)
	case c.Task() == "" && len(c.Files) == 0:
		return fault(at+".input", "is missing: write the task")
	case *c.MinPassRate < 0 || *c.MinPassRate > 1:
		return fault(at+".min_pass_rate", "is %v; it is a part of the trials, from 0 to 1", *c.MinPassRate)
	case len(c.Graders) == 0:
		return fault(at+".graders", "is missing: nothing would say whether the case passes")
	case len(c.Graders) > maxGraders:
		return fault(at+".graders", "has %d with those of the suite, and %d are allowed", len(c.Graders), maxGraders)
	case len(c.Files) > maxFiles:
		return fault(at+".files", "has %d files, and %d are allowed", len(c.Files), maxFiles)
	case c.Timeout < 0:
		return fault(at+".timeout", "is negative")
	}
	if err := agent.CheckName(c.Agent); err != nil {
		return fault(at+".agent", "%w; name it in the case or in the suite", err)
	}
	for i := range c.Graders {
		if err := c.Graders[i].Check(); err != nil {
			return fault(fmt.Sprintf("%s.graders[%d]", at, i), "(those of the suite come first): %w", err)
		}
	}
	for _, path := range c.Files {
		if !filepath.IsLocal(path) {
			return fault(at+".files", "has %.200q: files lie within the suite's directory", path)
		}
	}
	if c.Person != nil {
		return c.Person.check(at + ".person")
	}
	return nil
}

func (p *Person) check(at string) error {
	switch {
	case len(p.Rules) > maxRules:
		return fault(at+".rules", "has %d, and %d are allowed", len(p.Rules), maxRules)
	case p.Model != "" && p.Goal == "":
		return fault(at+".goal", "is missing: it says what the person asks for")
	case p.Goal != "" && p.Model == "":
		return fault(at+".model", "is missing: it is who answers with the goal")
	case p.MaxReplies < 0:
		return fault(at+".max_replies", "is negative")
	}
	if err := p.Player(nil).Check(); err != nil {
		return fault(at, "%w", err)
	}
	return nil
}

// Outside reports whether some grader is a command, or a function of that name.
func (s *Suite) Outside(is func(grade.Spec) bool) bool {
	return slices.ContainsFunc(s.Graders, is) || slices.ContainsFunc(s.Cases, func(c Case) bool { return slices.ContainsFunc(c.Graders, is) })
}
