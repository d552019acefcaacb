package agent

import (
	"fmt"
	"slices"
	"strings"
)

// Reminder is a text that a model reads at the end of each of its requests.
type Reminder struct {
	// Text is what the model reads; at most 500 bytes.
	Text string `json:"text"`
	// Propagate says which sub-agents read it too: all below, those that this agent starts itself
	// (session), or none. Empty means none.
	Propagate Propagation `json:"propagate,omitempty"`
}

// Propagation says which sub-agents have a reminder of an agent above them.
type Propagation string

// The values of Propagation. The zero value means none.
const (
	PropagateAll     Propagation = "all"     // every agent below, at any depth
	PropagateSession Propagation = "session" // the sub-agents that the agent itself starts
	PropagateNone    Propagation = "none"    // nobody else
)

// InheritedReminder is a reminder of an agent above. The Spec of a sub-agent's run has it.
type InheritedReminder struct {
	Reminder
	Source ReminderSource `json:"source"`
	// OriginatingAgent is the name of the agent whose definition has it.
	OriginatingAgent string `json:"originating_agent"`
}

// ReminderSource is where a reminder comes from.
type ReminderSource string

// ReminderInherited is the source of a reminder of an agent above.
const ReminderInherited ReminderSource = "inherited"

// Bounds of an agent's own reminders.
const (
	maxReminders = 8
	maxReminder  = 500 // bytes
)

// checkReminders refuses reminders that say nothing, are too long or go nowhere.
func (d Definition) checkReminders() error {
	fault := func(path, format string, args ...any) error {
		return Errorf(CodeInvalidInput, "agent %s: %s: %s", d.Name, path, fmt.Sprintf(format, args...)).WithPath(path)
	}
	if len(d.Reminders) > maxReminders {
		return fault("reminders", "there are %d; at most %d are taken", len(d.Reminders), maxReminders)
	}
	for i, r := range d.Reminders {
		path := fmt.Sprintf("reminders[%d]", i)
		switch {
		case strings.TrimSpace(r.Text) == "":
			return fault(path+".text", "it is blank; say what to remember")
		case len(r.Text) > maxReminder:
			return fault(path+".text", "it has %d bytes; at most %d are taken", len(r.Text), maxReminder)
		case strings.ContainsFunc(r.Text, controls):
			return fault(path+".text", "it has a control character; take it out")
		case !slices.Contains([]Propagation{"", PropagateAll, PropagateSession, PropagateNone}, r.Propagate):
			return fault(path+".propagate", "it must be all, session or none, not %q", r.Propagate)
		}
	}
	return nil
}

// RemindersBelow returns the reminders that the sub-agents of a run have from it. inherited are the
// run's own from above: of those only the ones for all go on.
func (d *Definition) RemindersBelow(inherited []InheritedReminder) (list []InheritedReminder) {
	for _, r := range inherited {
		if r.Propagate == PropagateAll {
			list = append(list, r)
		}
	}
	for _, r := range d.Reminders {
		if r.Propagate == PropagateAll || r.Propagate == PropagateSession {
			list = append(list, InheritedReminder{Reminder: r, Source: ReminderInherited, OriginatingAgent: d.Name})
		}
	}
	return list
}

// ReminderTexts returns the texts of the run's reminders, each on one line: those of the agents above
// first, with their agents' names. It is empty if there are none.
func (s *Spec) ReminderTexts() []string {
	texts := []string{}
	for _, r := range s.InheritedReminders {
		texts = append(texts, fmt.Sprintf("%s (from the agent %s)", oneLine(r.Text), r.OriginatingAgent))
	}
	for _, r := range s.Reminders {
		texts = append(texts, oneLine(r.Text))
	}
	return texts
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// ReminderMessage returns the message with which each request of the run ends. It is zero, with no
// parts, if there are no reminders. No log has it.
func (s *Spec) ReminderMessage() Message {
	texts := s.ReminderTexts()
	if len(texts) == 0 {
		return Message{}
	}
	m := TextMessage(RoleUser, s.Text(TextReminders)+"\n- "+strings.Join(texts, "\n- "))
	m.Note = NoteReminders
	return m
}
