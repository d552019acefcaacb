package evalrun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// The steps of a trial. Histories record their names.
var (
	begin        = durable.Activity[beginInput, begun]{Name: "fermata.eval.begin"}
	await        = durable.Activity[awaitInput, awaited]{Name: "fermata.eval.await"}
	decide       = durable.Activity[decideInput, eval.Answer]{Name: "fermata.eval.decide"}
	answer       = durable.Activity[answerInput, string]{Name: "fermata.eval.answer"}
	finish       = durable.Activity[finishInput, finished]{Name: "fermata.eval.finish"}
	gradeFacts   = durable.Activity[gradeInput, eval.Trial]{Name: "fermata.eval.grade"}
	gradeOutside = durable.Activity[outsideInput, grade.Verdict]{Name: "fermata.eval.grade_outside"}
)

// steps carries out the steps.
type steps struct{ o *Options }

type beginInput struct {
	Session    string       `json:"session"`
	Evaluation string       `json:"evaluation"`
	Suite      string       `json:"suite"`
	Case       eval.Case    `json:"case"`
	N          int          `json:"trial"`
	Limits     agent.Limits `json:"limits,omitzero"`
	Digests    []string     `json:"digests,omitempty"`
}

type begun struct {
	Run string `json:"run"`
}

// begin starts the trial's run, unless it was started before a crash.
func (s *steps) begin(ctx context.Context, in beginInput) (out begun, err error) {
	if err := s.allowed(&in.Case); err != nil {
		return out, err
	}
	o := in.options()
	run, err := s.o.Runs.Get(ctx, in.Session)
	if err == nil {
		// Whoever knows the evaluation's id can start a run in this session first.
		return begun{run.ID}, s.own(ctx, run, o.Input(in.Case.Agent, in.Case.Task()))
	}
	if !errors.Is(err, agent.CodeNotFound) {
		return out, err
	}
	for i, path := range in.Case.Files {
		data, err := s.file(path, in.Digests[i])
		if err != nil {
			return out, err
		}
		o.Files = append(o.Files, agent.FileInput{Name: filepath.Base(path), Data: data})
	}
	run, err = s.o.Runs.Start(ctx, in.Case.Agent, in.Case.Task(), o)
	if err != nil {
		return out, err
	}
	return begun{run.ID}, nil
}

// file reads a file of the suite. It refuses one that has changed since the evaluation
// began: the trials would not be alike.
func (s *steps) file(path, digest string) ([]byte, error) {
	data, err := readFile(s.o.Dir, path)
	if err != nil {
		return nil, err
	}
	if digestOf(data) != digest {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the file %s has changed since the evaluation began: start a new one", path)
	}
	return data, nil
}

// readFile reads a file within a directory.
func readFile(dir, path string) ([]byte, error) {
	if dir == "" {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the evaluator has no directory with files (Options.Dir), and the suite has the file %s", path)
	}
	data, err := regularFile(dir, path)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "the file %s of the suite: %w", path, err)
	}
	return data, nil
}

// regularFile reads a file below a directory. A pipe would be waited for without end.
func regularFile(dir, path string) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	switch info, err := root.Stat(path); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case info.Size() > agent.MaxFile:
		return nil, fmt.Errorf("it has more than %d bytes", agent.MaxFile)
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, agent.MaxFile))
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

type awaitInput struct {
	Session string `json:"session"`
	// Seen are the requests that the person has decided about. Open are those of them that it
	// leaves open.
	Seen []string `json:"seen,omitempty"`
	Open []string `json:"open,omitempty"`
}

// awaited is a request that is new, or else how the run ended, or that it is suspended and
// nobody will answer.
type awaited struct {
	Request *agent.Request `json:"request,omitempty"`
	Status  agent.Status   `json:"status,omitempty"`
	Reason  string         `json:"reason,omitempty"`
}

func requestKey(q *agent.Request) string { return q.Session + " " + q.ID }

// settled is how long a suspension lasts before the trial ends in it, if it is not of the
// run's own requests: an answer to a sub-agent may still be on its way.
const settled = 3 * time.Second

// await waits for the next thing that the trial has to decide about.
func (s *steps) await(ctx context.Context, in awaitInput) (out awaited, err error) {
	run, err := s.o.Runs.Get(ctx, in.Session)
	if err != nil {
		return out, err
	}
	ctx, stop := context.WithCancel(ctx)
	found := make(chan awaited, 3) // room for all who may send, so that none of them stays
	failed := make(chan error, 3)
	done := make(chan struct{}, 3)
	defer func() {
		stop()
		for range 3 {
			<-done
		}
	}()
	w := &awaiting{steps: s, run: run, in: in}
	for _, look := range []func(context.Context) (*awaited, error){w.end, w.requests, w.suspension} {
		go func() {
			defer func() { done <- struct{}{} }()
			switch a, err := look(ctx); {
			case err != nil:
				failed <- err
			case a != nil:
				found <- *a
			}
		}()
	}
	select {
	case out := <-found:
		return out, nil
	case err := <-failed:
		return out, err
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// awaiting looks at one run in several ways at once.
type awaiting struct {
	*steps
	run *client.Run
	in  awaitInput
}

// end waits for the end of the run.
func (w *awaiting) end(ctx context.Context) (*awaited, error) {
	o, err := w.run.Result(ctx)
	if err != nil {
		return nil, err
	}
	return &awaited{Status: o.Status, Reason: o.Reason}, nil
}

// requests waits for a request of the run or of a run below it.
func (w *awaiting) requests(ctx context.Context) (*awaited, error) {
	for q, err := range w.o.Runs.Requests(ctx, w.in.Session) {
		if err != nil {
			return nil, err
		}
		if !slices.Contains(w.in.Seen, requestKey(&q)) {
			return &awaited{Request: &q}, nil
		}
	}
	return nil, nil // the run has ended, as end sees too
}

// suspension waits until the run is suspended and nothing will change that.
func (w *awaiting) suspension(ctx context.Context) (*awaited, error) {
	if len(w.in.Open) == 0 {
		return nil, nil
	}
	var id string
	var since time.Time
	for {
		o, err := w.run.Wait(ctx)
		if err != nil || o.Status != agent.StatusSuspended || o.Suspension == nil {
			return nil, err // an end, which end sees too
		}
		if o.Suspension.ID != id {
			id, since = o.Suspension.ID, time.Now()
		}
		// A parked run goes on by itself.
		waits := o.Suspension.Kind != agent.SuspensionParked
		if waits && (w.allOpen(o.Suspension) || time.Since(since) > settled) {
			return &awaited{Status: o.Status, Reason: o.Reason}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// allOpen reports whether the person leaves all requests of a suspension open.
func (w *awaiting) allOpen(s *agent.Suspension) bool {
	return len(s.Requests) > 0 && !slices.ContainsFunc(s.Requests, func(q agent.Request) bool { return !slices.Contains(w.in.Open, requestKey(&q)) })
}

type finishInput struct {
	Session string `json:"session"`
	Reason  string `json:"reason"`
}

// finished is what the run was before it was ended.
type finished struct {
	Status agent.Status `json:"status,omitempty"`
	Reason string       `json:"reason,omitempty"`
}

// finish ends the run, if one is there.
func (s *steps) finish(ctx context.Context, in finishInput) (out finished, err error) {
	run, err := s.o.Runs.Get(ctx, in.Session)
	if errors.Is(err, agent.CodeNotFound) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	// A run without a worker says nothing, and can be cancelled all the same.
	if was, err := run.Status(ctx); err == nil {
		out = finished{was.Status, was.Reason}
	}
	if _, err = run.Cancel(ctx, in.Reason, &client.CancelOptions{By: eval.By}); err == nil {
		_, err = run.Result(ctx)
	}
	return out, err
}
