package worker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/play"
	"github.com/fermata-agents/fermata/internal/wire"
	"github.com/fermata-agents/fermata/store"
)

const (
	// flowTrial is how long a flow's function may take on a run's log, as in a worker.
	flowTrial = 10 * time.Second
	// maxPaths bounds the paths that a verdict names, of each kind.
	maxPaths = 32
)

// triesFlow runs a flow's function of this build on the run's log, and sets what it would do
// otherwise. It needs a store. A run whose log has gone on since its history was read, or is not
// there, is left as it is: that is not the function's fault.
func (v *Verdict) triesFlow(ctx context.Context, is *recorded, has *activities.Activities) error {
	if is.Spec == nil || !is.Spec.Flow || has == nil || has.Log == nil || is.Log.Head == "" && len(is.Log.Tail) == 0 {
		return nil
	}
	log, err := has.Log.Known(ctx, is.Log.Head, is.Log.Tail)
	if errors.Is(err, agent.CodeChunkMissing) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the log of session %s: %w", v.Session, err)
	}
	log = log.With(is.Log.Tail, is.Log.Seq)
	v.setSteps(play.Compare(ctx, has.Flows[v.Agent], store.KnownEvents(log.Events()), wire.MaxSteps, flowTrial))
	return nil
}

// setSteps sets how the steps of a flow differ.
func (v *Verdict) setSteps(d play.Difference) {
	if len(d.Anew)+len(d.Left) > 0 {
		v.Steps = &StepsDifference{Anew: d.Anew[:min(len(d.Anew), maxPaths)], Left: d.Left[:min(len(d.Left), maxPaths)]}
	}
	var reasons []string
	say := func(what string, paths []string) {
		if len(paths) > 0 {
			reasons = append(reasons, what+" "+pathsOf(paths))
		}
	}
	switch {
	case d.Err != nil:
		v.Compatibility = ChangedSteps
		reasons = append(reasons, fmt.Sprintf("its flow fails: %v", d.Err))
	case len(d.Left) > 0:
		v.Compatibility = ChangedSteps
	}
	say("it leaves", d.Left)
	if v.Compatibility == ChangedSteps {
		say("it asks anew for", d.Anew)
	}
	v.Reason = strings.Join(reasons, "; ")
}

func pathsOf(paths []string) string {
	const most = 5
	if len(paths) <= most {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), len(paths)-most)
}
