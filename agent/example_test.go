package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// An agent answers with a Go type, and works within limits.
func ExampleDefinition() {
	type verdict struct {
		Urgent bool   `json:"urgent" jsonschema:"whether a person has to look today"`
		Reply  string `json:"reply" jsonschema:"what the customer is told"`
	}
	lead := agent.Definition{
		Name:         "lead",
		Model:        "anthropic/claude-sonnet-5",
		Instructions: "Triage the ticket.",
		Tools:        []string{"look_up", "refund"},
		Output:       model.OutputOf[verdict](),
		Limits:       agent.Limits{Turns: 40, CostUSD: 2 * agent.Dollar, WallClock: 30 * agent.Minute},
	}
	if err := lead.Check(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(lead.Output))
	// Output: {"type":"object","properties":{"urgent":{"type":"boolean","description":"whether a person has to look today"},"reply":{"type":"string","description":"what the customer is told"}},"required":["urgent","reply"],"additionalProperties":false}
}

// A model that fails is replaced by the next one in the list.
func ExampleDefinition_fallbacks() {
	lead := agent.Definition{
		Name:          "lead",
		Model:         "anthropic/claude-sonnet-5",
		Fallbacks:     []string{"openai/gpt-5.4", "local"}, // local is a server of your own
		ModelAttempts: 2,
		ModelTimeout:  3 * agent.Minute,
	}
	if err := lead.Check(); err != nil {
		log.Fatal(err)
	}
	for _, name := range lead.Models() {
		fmt.Println(name)
	}
	// Output:
	// anthropic/claude-sonnet-5
	// openai/gpt-5.4
	// local
}

// One judge looks at every second answer, five times at most. Another one is asked when the model makes the
// same call in the third reply in a row: if it accepts, the run completes.
func ExampleCadence() {
	writer := agent.Definition{
		Name:  "writer",
		Model: "anthropic/claude-sonnet-5",
		Verify: agent.Verify{Checks: []agent.Check{
			{Name: "written", Command: "test -s report.md"}, // looks at each answer
			{Name: "rubric", Judge: &agent.Judge{Instructions: "Every claim names a file."}, Cadence: agent.Cadence{Every: 2, MaxInvocations: 5}},
			{Name: "done", Judge: &agent.Judge{Instructions: "Is the report complete?"}, Cadence: agent.Cadence{When: agent.CadenceStalled}},
		}},
	}
	if err := writer.Check(); err != nil {
		log.Fatal(err)
	}
	for _, k := range writer.ChecksAt(agent.PointStalled) {
		fmt.Println(k.Name)
	}
	// Output: done
}

// The lead gives work to two agents, and the cashier may use one tool that the lead lacks.
func ExampleSubAgent() {
	lead := agent.Definition{
		Name:  "lead",
		Model: "anthropic/claude-sonnet-5",
		Tools: []string{"look_up"},
		Agents: []agent.SubAgent{
			{Agent: "research", Description: "Finds out what was bought."},
			{Agent: "cashier", Tools: []string{"refund"}, Limits: agent.Limits{Turns: 5}},
		},
	}
	if err := lead.Check(); err != nil {
		log.Fatal(err)
	}
	for _, sub := range lead.Agents {
		fmt.Println("the model calls", sub.Tool())
	}
	// Output:
	// the model calls subagent__research
	// the model calls subagent__cashier
}

// A refund above 100 EUR needs an approval within three days.
func ExampleRule() {
	rule := agent.Rule{
		Do:        agent.RulingAsk,
		Tools:     []string{"refund"},
		Arguments: json.RawMessage(`{"properties":{"eur":{"exclusiveMinimum":100}}}`),
		Reason:    "More than 100 EUR need a second look.",
		AnswerTimeouts: agent.AnswerTimeouts{
			Remind:   agent.Day,
			Deadline: 3 * agent.Day,
			Default:  agent.DefaultReject,
		},
	}
	cashier := agent.Definition{Name: "cashier", Model: "anthropic/claude-sonnet-5", Tools: []string{"refund"}, Rules: []agent.Rule{rule}}
	if err := cashier.Check(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(rule.Covers(agent.ToolSpec{Name: "refund"}), rule.Covers(agent.ToolSpec{Name: "look_up"}))
	fmt.Println(rule.Reason, "Deadline:", rule.Deadline)
	// Output:
	// true false
	// More than 100 EUR need a second look. Deadline: 72h
}

// Durations are counted in Go, and read from JSON with days.
func ExampleDuration() {
	timeouts := agent.AnswerTimeouts{Remind: 36 * agent.Hour}
	if err := json.Unmarshal([]byte(`{"deadline":"7d"}`), &timeouts); err != nil {
		log.Fatal(err)
	}
	fmt.Println(timeouts.Remind, timeouts.Deadline)
	fmt.Println(time.Duration(timeouts.Deadline).Hours(), "hours")
	// Output:
	// 36h 168h
	// 168 hours
}

// The outcome of a run has its answer, or says why there is none.
func ExampleOutcome_Decode() {
	var verdict struct{ Reply string }
	for _, end := range []agent.Outcome{
		{Status: agent.StatusCompleted, Output: json.RawMessage(`{"reply":"We have sent you 80 EUR."}`)},
		{Status: agent.StatusFailed, Error: agent.Errorf(agent.CodeLimitCost, "the run used up its limit of 2 USD")},
	} {
		if err := end.Decode(&verdict); err != nil {
			fmt.Println(agent.CodeOf(err), "-", err)
			continue
		}
		fmt.Println(verdict.Reply)
	}
	// Output:
	// We have sent you 80 EUR.
	// limit_cost - the run used up its limit of 2 USD
}

// A code says which error it is, whatever is wrapped around it.
func ExampleCode() {
	err := fmt.Errorf("starting the triage: %w", agent.Errorf(agent.CodeBusy, "session ticket-7 has a live run"))
	if errors.Is(err, agent.CodeBusy) {
		fmt.Println("say it to the run that lives:", err)
	}
	code := agent.CodeOf(err)
	fmt.Println(code.HTTPStatus(), code.ExitStatus(), code.Retryable())
	// Output:
	// say it to the run that lives: starting the triage: session ticket-7 has a live run
	// 409 6 false
}

// A program finds the file that a model names in its answer.
func ExampleFindFile() {
	chart := agent.Part{Type: agent.PartFile, File: &agent.File{
		Session: "review-7", Digest: "3f9a0c1b" + strings.Repeat("0", 56), Size: 5120, MediaType: "image/png", Name: "chart.png",
	}}
	transcript := []agent.Message{{Role: agent.RoleUser, Parts: []agent.Part{chart}}, agent.TextMessage(agent.RoleAssistant, "See chart.png#3f9a0c1b.")}

	var files []agent.Part
	for _, m := range transcript {
		files = append(files, m.FileParts()...)
	}
	for _, name := range []string{"chart.png#3f9a0c1b", "chart.png", "page.png"} {
		p, err := agent.FindFile(files, name)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(p.File)
	}
	// Output:
	// chart.png#3f9a0c1b (image/png, 5120 bytes)
	// chart.png#3f9a0c1b (image/png, 5120 bytes)
	// there is no file "page.png"; there are: chart.png#3f9a0c1b (image/png, 5120 bytes)
}
