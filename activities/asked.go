package activities

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/loop"
	"github.com/fermata-agents/fermata/store"
)

// asks reports whether a message is a task, or part of one, also if it is files alone; m may be nil.
func asks(m *agent.Message, daemon bool) bool {
	return m != nil && m.Role == agent.RoleUser && loop.IsTask(m.Note, daemon)
}

// unreadTask returns what a check of the task looks at: all that was asked since the session's last turn
// that such a check has let begin. The first turn reads that: what a check has refused stays in the
// conversation, and so does the task of a run that ended before its check. A turn of an agent without
// such a check ends that only for what agents without one were asked. If nothing was asked since, the run
// goes on with an earlier task.
func unreadTask(whole *store.View) agent.RunTask {
	spec := whole.Spec()
	events := store.KnownEvents(whole.Events())
	guarded := guardedEvents(events)
	var unread []agent.Event // the newest first
	read := false
	for i, e := range slices.Backward(events) {
		turn := e.Type == agent.EventTurnStarted
		if turn && guarded[i] || e.Started != nil && e.Started.Carry == agent.CarryReset {
			break
		}
		read = read || turn
		if asks(e.Message, spec.Daemon != nil) && (guarded[i] || !read) {
			unread = append(unread, agent.Event{Message: e.Message})
		}
	}
	if len(unread) == 0 {
		return askedIn(whole)
	}
	unread = append(unread, agent.Event{Started: &agent.Started{Spec: spec}})
	slices.Reverse(unread)
	for i := range unread {
		unread[i].Seq = int64(i + 1)
	}
	return askedIn((&store.View{}).With(unread, int64(len(unread))))
}

// guardedEvents reports of each event whether it is of a run whose task is checked.
func guardedEvents(events []agent.Event) []bool {
	guarded := make([]bool, len(events))
	checked := true // unless the run is known
	for i, e := range events {
		if e.Started != nil && e.Started.Spec != nil {
			checked = len(e.Started.Spec.ChecksAt(agent.PointBeforeRun)) > 0
		}
		guarded[i] = checked
	}
	return guarded
}
