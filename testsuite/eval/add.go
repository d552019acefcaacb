package eval

import (
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// maxExact bounds an answer that becomes a grader, in bytes.
const maxExact = 8 << 10

// FromRun makes a case of a run that has ended. Its graders ask for the same end, the same
// tool calls and the same answer. left says what the case does not have.
func FromRun(name, agentName, session string, f *grade.Facts) (c Case, left []string) {
	input, _ := json.Marshal(f.Task) // a string always encodes
	c = Case{Name: name, Agent: agentName, Input: input, Session: session, Graders: []grade.Spec{{Status: grade.Status(f.Status)}}}
	var tools []string
	for _, call := range f.Calls {
		tools = append(tools, call.Tool)
	}
	switch {
	case f.CallsLeft > 0:
		left = append(left, "the path: the run made too many calls")
	case len(tools) == 0:
		none := 0
		c.Graders = append(c.Graders, grade.Spec{Calls: &grade.Calls{Made: []grade.CallPattern{{Tool: "*", Count: grade.Count{Max: &none}}}}})
	default:
		c.Graders = append(c.Graders, grade.Spec{Calls: &grade.Calls{Exactly: tools}})
	}
	answer := f.Text
	if len(f.Output) > 0 {
		answer = string(f.Output)
	}
	if answer != "" && len(answer) <= maxExact {
		c.Graders = append(c.Graders, grade.Spec{Exact: grade.Exact(answer)})
	} else if answer != "" {
		left = append(left, "the answer: it is too long to be compared")
	}
	var open []string
	c.Person, open = personOf(f.Requests)
	return c, append(left, open...)
}

// personOf makes a person who decides as people did.
func personOf(asked []grade.Request) (p *Person, left []string) {
	var rules []PersonRule
	for _, q := range asked {
		rule := PersonRule{Type: q.Type, Tool: q.Tool, Times: 1}
		switch {
		case q.Decision == "approve":
			rule.Approve = true
		case q.Decision == "reject":
			rule.Reject = "not approved"
		case q.Decision == "":
			continue // nobody answered
		default:
			left = append(left, fmt.Sprintf("the answer to %.100q: add a rule under person", q.Text))
			continue
		}
		rules = append(rules, rule)
	}
	if len(rules) == 0 {
		return nil, left
	}
	return &Person{Rules: rules}, left
}

// Append adds a case to a suite's YAML, and keeps the rest of it with its comments. An empty
// text becomes a new suite of that name. The result is a valid suite.
func Append(suite []byte, name string, c Case) ([]byte, error) {
	if len(suite) > MaxSuite {
		return nil, agent.Errorf(agent.CodeTooLarge, "the suite has %d bytes, and %d are allowed", len(suite), MaxSuite)
	}
	one, err := nodeOf(c)
	if err != nil {
		return nil, err
	}
	if len(suite) == 0 {
		suite = fmt.Appendf(nil, "name: %s\ncases: []\n", name)
	}
	var whole yaml.Node
	if err := yaml.Unmarshal(suite, &whole); err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "not YAML: %w", err)
	}
	cases := casesOf(&whole)
	if cases == nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the suite has no list of cases")
	}
	cases.Style = 0 // "[]" would put the new case on its line
	cases.Content = append(cases.Content, one)
	text, err := yaml.Marshal(&whole)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "writing the suite: %w", err)
	}
	if _, err := Read(text); err != nil {
		return nil, fmt.Errorf("the suite with the case %s: %w", c.Name, err)
	}
	return text, nil
}

// nodeOf returns a case as YAML, with the keys in the order of its fields.
func nodeOf(c Case) (*yaml.Node, error) {
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "writing a case: %w", err)
	}
	var doc yaml.Node
	// JSON is YAML, and the nodes keep the order of the keys.
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "writing a case: %w", err)
	}
	block(&doc)
	return doc.Content[0], nil
}

// block undoes JSON's style.
func block(n *yaml.Node) {
	if n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode {
		n.Style = 0
	}
	// A key needs no quotes, and a long text is read best in lines; the values keep theirs, so
	// that "7" stays a text.
	if n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			n.Content[i].Style = 0
		}
	}
	for _, below := range n.Content {
		block(below)
	}
}

// casesOf returns the list of cases; nil if there is none.
func casesOf(doc *yaml.Node) *yaml.Node {
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	keys := doc.Content[0].Content
	i := slices.IndexFunc(keys, func(n *yaml.Node) bool { return n.Value == "cases" })
	if i < 0 || i+1 >= len(keys) || keys[i+1].Kind != yaml.SequenceNode {
		return nil
	}
	return keys[i+1]
}
