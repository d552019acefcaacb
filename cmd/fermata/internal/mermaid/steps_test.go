package mermaid_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/mermaid"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func step(path string, status agent.CallStatus) agent.StepRecord {
	s := agent.StepRecord{Path: path, Status: status, Asked: began, Started: began}
	if status != "" {
		s.Ended = began.Add(2 * time.Second)
	}
	return s
}

func TestStepsAreDrawn(t *testing.T) {
	reviewer := step("file.1/reviewer", agent.CallOK)
	reviewer.Session, reviewer.Cost = "s/reviewer-1", agent.Dollar/50
	ask := step("ask", "")
	ask.Request = "q-1"
	require.Equal(t, `flowchart TD
  n1["plan<br>ok, 2s"]:::ok
  subgraph n2["file"]
    n3["1/reviewer<br>ok, 2s<br>session s/reviewer-1, $0.02"]:::ok
    subgraph n4["2"]
      n5["reviewer<br>failed, 2s"]:::failed
      n6["fix<br>open for 10s"]:::open
      n5 --> n6
    end
  end
  n7["ask<br>asks q-1 for 10s"]:::asks
  n1 --> n2
  n2 --> n7
  classDef ok fill:#e6f4ea,stroke:#188038,color:#000
  classDef failed fill:#fce8e6,stroke:#c5221f,color:#000
  classDef dropped fill:#f1f3f4,stroke:#9aa0a6,stroke-dasharray:4,color:#5f6368
  classDef open fill:#fff,stroke:#5f6368,stroke-dasharray:4,color:#000
  classDef asks fill:#fef7e0,stroke:#f29900,color:#000
`, mermaid.Steps([]agent.StepRecord{step("plan", agent.CallOK), reviewer, step("file.2/reviewer", agent.CallFailed), step("file.2/fix", ""), ask}, began.Add(10*time.Second)))
}

// What nobody waited for any more is not drawn as a failure: the losers of a quorum, and what was never
// made. What succeeded all the same has succeeded.
func TestDroppedStepsAreNoFailures(t *testing.T) {
	cancelled, late, lost := step("m.2/a", agent.CallFailed), step("m.3/a", agent.CallOK), step("m.4/a", agent.CallFailed)
	cancelled.Dropped, late.Dropped = true, true
	drawn := mermaid.Steps([]agent.StepRecord{step("m.1/a", agent.CallOK), cancelled, late, lost, step("end", agent.CallSkipped)}, began)
	require.Contains(t, drawn, `n3["2/a<br>not needed (failed), 2s"]:::dropped`)
	require.Contains(t, drawn, `n4["3/a<br>ok, 2s"]:::ok`)
	require.Contains(t, drawn, `n5["4/a<br>failed, 2s"]:::failed`)
	require.Contains(t, drawn, `n6["end<br>skipped, 2s"]:::dropped`)
	require.Contains(t, drawn, "classDef dropped fill:#f1f3f4,stroke:#9aa0a6,stroke-dasharray:4")
}

// Names come from a flow's data: they can't end their label.
func TestNamesAreText(t *testing.T) {
	require.Contains(t, mermaid.Steps([]agent.StepRecord{step(`a"]:::x; click n1 "javascript:alert(1)"`, "")}, began), `n1["a#quot;]:::x;`)
}

func TestMuchIsDrawnShort(t *testing.T) {
	var steps []agent.StepRecord
	for i := range 5000 {
		status := agent.CallOK
		if i == 2500 {
			status = agent.CallFailed
		}
		steps = append(steps, step(fmt.Sprintf("item.%d/agent", i), status))
	}
	drawn := mermaid.Steps(steps, began)
	require.Contains(t, drawn, "… 4960 more<br>4959 ok, 1 failed")
	require.Less(t, strings.Count(drawn, "\n"), 60)
}
