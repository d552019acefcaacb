package evalrun

import (
	"context"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/grade"
)

// Recorded makes a case of the last run of a session: its task, the path of its tool calls,
// what people decided, and its outcome. left says what the case does not have; a person has
// to add it. Errors are those of reading the session, and [agent.CodeInvalidInput] if the
// run has not ended.
func Recorded(ctx context.Context, runs *client.Client, session, name string) (c eval.Case, left []string, err error) {
	r := newFactReader(session)
	var spec *agent.Spec
	earlier := 0
	for e, err := range runs.Events(ctx, session, &client.EventsOptions{Tree: true}) {
		if err != nil {
			return c, nil, err
		}
		if e.Started != nil && e.Session == session {
			// Only the last run: the earlier ones are a conversation before it.
			if spec != nil {
				earlier++
			}
			r, spec = newFactReader(session), e.Started.Spec
		}
		r.take(e)
	}
	if r.outcome == nil || spec == nil {
		return c, nil, agent.Errorf(agent.CodeInvalidInput, "the last run of session %s has not ended: a case is made of what it did", session)
	}
	r.finish()
	c, left = eval.FromRun(name, spec.Name, session, r.facts)
	if earlier > 0 {
		left = append(left, "what was said in the session before its last run")
	}
	if r.files > 0 {
		left = append(left, "the files of the task: save them beside the suite, and name them under files")
	}
	return c, left, nil
}

func newFactReader(session string) *factReader {
	return &factReader{facts: &grade.Facts{}, session: session, calls: map[string]int{}, requests: map[string]int{}}
}
