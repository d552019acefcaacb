package review

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/flow"
	"github.com/fermata-agents/fermata/tool"
	"github.com/fermata-agents/fermata/worker"
)

// Change is what the flow reviews.
type Change struct {
	Number int    `json:"number"`
	Diff   string `json:"diff"`
}

// Finding is what one reviewer answers.
type Finding struct {
	Risk string   `json:"risk" jsonschema:"low or high"`
	Says []string `json:"says"`
}

// Report is what becomes of a change.
type Report struct {
	Number   int       `json:"number"`
	Findings []Finding `json:"findings"`
	Merged   bool      `json:"merged"`
	By       string    `json:"by,omitempty"`
}

// Merge merges a change. It takes a key, so that a second call with the same key changes nothing.
type Merge func(ctx context.Context, number int, key string) error

// Options are what a worker of the flow needs, besides models and a store.
func Options(merge Merge) *worker.Options {
	return &worker.Options{
		Flows:  []flow.Flow{flow.New("review", merge.review, &flow.Options{Description: "Reviews a change and merges it.", Agents: []agent.SubAgent{{Agent: "reviewer"}}})},
		Agents: []agent.Definition{{Name: "reviewer", Model: "anthropic/claude-sonnet-5", Instructions: "You review code. Answer with what matters, and with the risk."}},
	}
}

// aspects are what the reviewers look at, each at one.
var aspects = []string{"security", "tests", "performance", "naming", "docs"}

// review asks five reviewers, and goes on when three have answered. If one of them sees a high
// risk, it asks the author. Somebody has a week to approve the change. Then it is merged.
func (merge Merge) review(c flow.Context, in Change) (Report, error) {
	out := Report{Number: in.Number}
	found, err := flow.Map(c, "aspect", aspects, func(c flow.Context, aspect string) (Finding, error) {
		return flow.Agent[Finding](c, "reviewer", fmt.Sprintf("Review the %s of this change:\n%s", aspect, in.Diff), nil)
	}, &flow.MapOptions{Need: 3, Key: func(i int) string { return aspects[i] }})
	if err != nil {
		return out, err
	}
	out.Findings = flow.Values(found)
	why := ""
	if risks := highRisks(out.Findings); len(risks) > 0 {
		if why, err = flow.Ask[string](c, "Why is this safe? "+strings.Join(risks, "; "), &flow.AskOptions{Name: "author"}); err != nil {
			return out, err
		}
	}
	d, err := flow.Approve(c, fmt.Sprintf("Merge change %d?", in.Number), out.Findings, &flow.ApproveOptions{Context: why, Remind: 24 * time.Hour, Deadline: 7 * 24 * time.Hour})
	if err != nil || !d.Approved {
		return out, err
	}
	out.By = d.By
	// If a worker dies in it, it is made again with the same key.
	out.Merged, err = flow.Do(c, "merge", func(ctx context.Context, call *tool.Call) (bool, error) {
		err := merge(ctx, in.Number, call.Key)
		return err == nil, err
	}, &flow.StepOptions{Attempts: 3})
	return out, err
}

func highRisks(findings []Finding) (says []string) {
	for _, f := range findings {
		if f.Risk == "high" {
			says = append(says, f.Says...)
		}
	}
	return says
}
