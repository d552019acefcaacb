package main

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/await"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/evalrun"
	"github.com/fermata-agents/fermata/testsuite/eval/report"
)

const (
	lookEvery = 500 * time.Millisecond
	// patientLooks is how many looks in a row may find no worker. It may be busy.
	patientLooks = 120
)

// follow shows an evaluation to its end, and writes the reports.
func (e *evaluator) follow(ctx context.Context, h *evalrun.Handle) error {
	e.Note("evaluation %s · %s", h.ID, counted(h.Total, "trial"))
	whole, err := e.watch(ctx, h)
	if err != nil {
		if ctx.Err() != nil {
			e.Note("the evaluation is not lost: %s continues it", e.CommandLine("eval resume %s", h.ID))
		}
		return err
	}
	e.forget()
	r := report.Of(whole)
	if err := e.write(r); err != nil {
		return err
	}
	e.printReport(r)
	return exitOfReport(r)
}

// watch shows the trials as they end, and returns the evaluation at its end.
func (e *evaluator) watch(ctx context.Context, h *evalrun.Handle) (*eval.Evaluation, error) {
	shown, silent := 0, 0
	for {
		p, err := h.Progress(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && silent < patientLooks && (errors.Is(err, agent.CodeTimeout) || errors.Is(err, agent.CodeNoWorker)):
			silent++
		case err != nil:
			return nil, e.hintResume(h, err)
		default:
			silent = 0
			if err := e.tell(ctx, h, p, shown); err != nil {
				return nil, err
			}
			shown = len(p.Done)
		}
		if err == nil && p.Ended {
			return h.Load(ctx)
		}
		await.Pause(ctx, lookEvery)
	}
}

// tell shows the trials that have ended since the last look.
func (e *evaluator) tell(ctx context.Context, h *evalrun.Handle, p evalrun.Progress, shown int) error {
	for i, c := range p.Done[min(shown, len(p.Done)):] {
		t, err := h.Trial(ctx, c)
		if err != nil {
			return err
		}
		if e.JSON {
			e.Line(lineOfTrial(t))
			continue
		}
		text := ""
		if t.Why != "" {
			text = ": " + short(t.Why)
		}
		e.Note("%d/%d  %s %d %s%s", shown+i+1, h.Total, t.Case, t.N, t.State, text)
	}
	return nil
}
