package report

import (
	"bytes"
	"encoding/json"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
)

// MaxFile bounds a file with a report, in bytes.
const MaxFile = 64 << 20

// Parse reads a report from lines of JSON: the trials, and the report itself. Lines of other
// types are skipped.
func Parse(lines []byte) (*Report, error) {
	var r *Report
	var trials []eval.Trial
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var kind struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(line, &kind); err != nil {
			return nil, agent.Errorf(agent.CodeInvalidInput, "not a report: each line has to be JSON, as eval run --json writes it: %w", err)
		}
		var err error
		switch kind.Type {
		case "trial":
			var t eval.Trial
			err = json.Unmarshal(line, &t)
			trials = append(trials, t)
		case "evaluation":
			r = &Report{}
			err = json.Unmarshal(line, r)
		}
		if err != nil {
			return nil, agent.Errorf(agent.CodeInvalidInput, "not a report: %w", err)
		}
	}
	if r == nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "not a report: no line has the type evaluation")
	}
	r.trials = trials
	return r, nil
}
