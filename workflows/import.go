package workflows

import (
	"encoding/json"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/activities"
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
)

// queueAnswers puts the answers that come with an import before all signals. The run takes them
// like a signal, as soon as it has its state.
func (r *run) queueAnswers(start agent.Start) {
	if len(start.Answers) == 0 {
		return
	}
	data, err := json.Marshal(agent.AnswersCommand{CommandHeader: agent.CommandHeader{By: start.By}, Answers: start.Answers})
	if err != nil {
		panic(err) // the task fails, not the run; the answers were decoded from JSON
	}
	r.queue.signals = slices.Insert(r.queue.signals, 0, signal{name: string(agent.VerbAnswers), data: data})
}

// importRun reads the state of a run that was suspended in another namespace or store.
func (r *run) importRun(ctx workflow.Context, e loop.Import) {
	start(ctx, r, activityCall[loop.ImportArgs, activities.ImportResult]{activity: activities.Import, in: e.ImportArgs, options: readLogOptions(), lane: activities.StoreLane, countLostWorkers: true}, func(o activities.ImportResult, err *agent.Error) loop.Input {
		return loop.Imported{Export: o.Export, State: o.State, Spec: &o.Spec, Err: err}
	})
}
