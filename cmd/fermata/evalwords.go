package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
	"github.com/fermata-agents/fermata/testsuite/eval/report"
	"github.com/fermata-agents/fermata/testsuite/eval/stats"
)

func of(n, all int) string { return fmt.Sprintf("%d/%d", n, all) }

func percent(f float64) string { return fmt.Sprintf("%.0f%%", 100*f) }

func interval(i stats.Interval) string { return fmt.Sprintf("%.0f to %.0f%%", 100*i.Low, 100*i.High) }

func oneDigit(f float64) string { return fmt.Sprintf("%.1f", f) }

func rounded(d agent.Duration) string {
	return time.Duration(d).Round(100 * time.Millisecond).String()
}

// short is a reason in a column.
func short(text string) string { return untrusted.Line(strings.TrimSpace(text), 60) }

// tallied says what came of the trials.
func tallied(r *report.Report) string {
	parts := []string{counted(r.Passed, "trial") + " passed", fmt.Sprintf("%d failed", r.Failed)}
	for _, part := range []struct {
		n    int
		what string
	}{{r.Errors, "in error"}, {r.LeftOut, "left out"}, {r.Open, "open"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(append(parts, "$"+r.Cost.String()), ", ")
}

// points writes a change of a rate.
func points(f float64) string { return fmt.Sprintf("%+.0f points", 100*f) }

func pValue(p float64) string { return fmt.Sprintf("%.3f", p) }

func sideWords(s *report.Side) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s", of(s.Passed, s.Trials), percent(s.Rate.Rate))
}
