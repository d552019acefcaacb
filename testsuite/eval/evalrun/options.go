package evalrun

import (
	"fmt"
	"path/filepath"

	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// Options are what an evaluator has. Temporal and Runs are required.
type Options struct {
	// Temporal is the server on which the runs are.
	Temporal temporalclient.Client
	// Runs starts and reads the runs of the trials. It needs the store of their workers, and
	// their task queue.
	Runs *client.Client
	// Suite is the only suite whose cases the steps take; they refuse others with
	// [agent.CodeDenied]. Nil takes any case: then whoever may write to the server names the
	// commands that Sandbox lets run.
	Suite *eval.Suite
	// Models are those of judges and persons, by full name or provider, as a worker has them.
	Models map[string]model.Model
	// Functions are graders in Go, by name.
	Functions map[string]grade.Func
	// Dir is the directory of the suite: its files and commands are there. It is absolute;
	// empty means that suites have neither.
	Dir string
	// Sandbox says what commands may do; nil refuses them.
	Sandbox *grade.Sandbox
}

// Names in histories, which must not change.
const (
	// WorkflowType is the type of an evaluation's workflow.
	WorkflowType = "fermata.eval"
	trialType    = "fermata.eval.trial"
	memoKey      = "fermata_eval"
)

// progress asks an evaluation where it stands.
var progress = durable.Query[struct{}, Progress]{Name: "progress"}

// Registry registers workflows and activities: a Temporal worker, or a test environment.
type Registry interface {
	durable.Registry
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}

// Register registers the workflows and activities of evaluations. Wrong options are
// [agent.CodeInvalidInput] errors.
func Register(r Registry, o *Options) error {
	switch {
	case o == nil || o.Temporal == nil || o.Runs == nil:
		return agent.Errorf(agent.CodeInvalidInput, "an evaluator needs Temporal and Runs")
	case o.Dir != "" && !filepath.IsAbs(o.Dir):
		return agent.Errorf(agent.CodeInvalidInput, "an evaluator's Dir must be absolute, not %q", o.Dir)
	case o.Sandbox != nil && o.Dir == "":
		return agent.Errorf(agent.CodeInvalidInput, "an evaluator with a Sandbox needs a Dir")
	}
	s := &steps{o}
	r.RegisterWorkflowWithOptions(evaluate, workflow.RegisterOptions{Name: WorkflowType})
	r.RegisterWorkflowWithOptions(trial, workflow.RegisterOptions{Name: trialType})
	begin.Register(r, beating(s.begin))
	await.Register(r, waiting(s.await))
	decide.Register(r, beating(s.decide))
	answer.Register(r, beating(s.answer))
	finish.Register(r, waiting(s.finish))
	gradeFacts.Register(r, beating(s.grade))
	gradeOutside.Register(r, beating(s.outside))
	return nil
}

// session returns the id of a trial's session. Its workflow has the same with ".trial".
func session(id, name string, n int) string { return fmt.Sprintf("%s.%s.%d", id, name, n) }

// trialID returns the id of a trial's workflow.
func trialID(id, name string, n int) string { return session(id, name, n) + ".trial" }
