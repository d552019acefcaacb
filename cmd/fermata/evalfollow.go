package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/await"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/evalrun"
	"github.com/fermata-agents/fermata/testsuite/eval/report"
)

const (
	lookEvery = 500 * time.Millisecond
	// evaluatorPatience is how long an evaluation may find no worker. It may be busy.
	evaluatorPatience = 2 * time.Minute
	// quietFirst is how long nothing is shown before a line says what is waited for. The next
	// such lines come after quietAgain.
	quietFirst = 10 * time.Second
	quietAgain = 30 * time.Second
	// lookPatience bounds one look. The client would wait longer for a lost server.
	lookPatience = 5 * time.Second
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
	shown, answered, due := 0, time.Now(), time.Now().Add(quietFirst)
	for {
		look, stop := context.WithTimeout(ctx, lookPatience)
		p, err := h.Progress(look)
		stop()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && time.Since(answered) < evaluatorPatience && passes(err):
			if time.Now().After(due) {
				e.noteLost(ctx, h)
				due = time.Now().Add(quietAgain)
			}
		case err != nil:
			return nil, e.hintResume(h, err)
		default:
			answered = time.Now()
			if err := e.tell(ctx, h, p, shown); err != nil {
				return nil, err
			}
			switch {
			case len(p.Done) > shown:
				due = answered.Add(quietFirst)
			case answered.After(due) && !p.Ended:
				e.noteQuiet(h, p)
				due = answered.Add(quietAgain)
			}
			shown = len(p.Done)
		}
		if err == nil && p.Ended {
			return h.Load(ctx)
		}
		await.Pause(ctx, lookEvery)
	}
}

// passes reports whether an error of a look may be over at the next one.
func passes(err error) bool {
	return errors.Is(err, agent.CodeTimeout) || errors.Is(err, agent.CodeNoWorker) || errors.Is(err, agent.CodeUnreachable)
}

// noteLost says who does not answer: the server, or the worker that evaluates.
func (e *evaluator) noteLost(ctx context.Context, h *evalrun.Handle) {
	look, stop := context.WithTimeout(ctx, lookPatience)
	defer stop()
	switch _, err := h.Ended(look); {
	case ctx.Err() != nil:
	case err != nil:
		e.Note("waiting for the Temporal server, which does not answer; the evaluation %s continues when it is back", h.ID)
	case strings.HasPrefix(h.Evaluator, evaluatorQueue):
		e.Note("waiting for a worker: none answers for the evaluation")
	default:
		e.Note("waiting for a worker: none evaluates on the task queue %s; start the Go program with evalrun.Register there", h.Evaluator)
	}
}

// noteQuiet says what is waited for while no trial ends.
func (e *evaluator) noteQuiet(h *evalrun.Handle, p evalrun.Progress) {
	lost := ""
	if e.resumed {
		lost = "; what a lost process was doing is repeated about 30 s after it"
	}
	e.Note("%d/%d ended, %d running, %d not begun%s", len(p.Done), h.Total, p.Running, p.Left, lost)
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
