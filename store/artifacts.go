package store

import (
	"slices"

	"github.com/fermata-agents/fermata/agent"
)

// Artifacts returns the last version of each artifact that the view's last run knows, the one
// saved last at the end: those of the session, or since the last run that began without them.
func (v *View) Artifacts() []agent.Artifact { return artifacts(v.events) }

func artifacts(events []agent.Event) (list []agent.Artifact) {
	for _, e := range KnownEvents(events) {
		switch {
		case e.Started != nil && e.Started.Carry == agent.CarryReset, e.Forked != nil && e.Forked.DropArtifacts:
			list = nil
		case e.Artifact != nil:
			list = slices.DeleteFunc(list, func(a agent.Artifact) bool { return a.Name == e.Artifact.Name })
			list = append(list, *e.Artifact)
		}
	}
	return list
}

// Lessons returns what the runs of the view have learned, the newest last: see [agent.AddLesson].
func (v *View) Lessons() (list []agent.Lesson) {
	for _, e := range KnownEvents(v.events) {
		switch {
		case e.Started != nil && e.Started.Carry == agent.CarryReset:
			list = nil
		case e.Lesson != nil:
			list = agent.AddLesson(list, *e.Lesson)
		}
	}
	return list
}
