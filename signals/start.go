package signals

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// DecodeStart reads a run's input strictly (wire §3). Its errors are
// [agent.InvalidInput], [agent.TooLarge] and [agent.Incompatible], with the path
// of the field; the start is what could be read of it then.
func DecodeStart(data []byte) (agent.Start, *agent.Error) {
	var s agent.Start
	err := durable.Decode(data, &s, agent.MaxPayload)
	if err == nil {
		err = CheckStart(s)
	}
	if err == nil && s.Park != nil {
		park, bad := TidyConditions(*s.Park)
		s.Park, err = &park, within("park", bad)
	}
	return s, durable.Within("start refused", err)
}

// Labels stand in every listing, so they are short.
const (
	maxLabelKey = 64
	maxLabel    = 256
)

// CheckStart refuses a start that can't be meant.
func CheckStart(s agent.Start) error {
	if s.V > agent.Version {
		return agent.Errorf(agent.Incompatible, "v is %d; this build reads up to %d", s.V, agent.Version).At("v")
	}
	if s.Agent == "" {
		return agent.Errorf(agent.InvalidInput, "agent is missing; name one, as in {\"agent\":\"reviewer\",\"input\":{\"text\":\"…\"}}").At("agent")
	}
	if err := agent.CheckName(s.Agent); err != nil {
		return err
	}
	switch s.Carry {
	case "", agent.CarryInherit, agent.CarryReset:
	default:
		return agent.Errorf(agent.InvalidInput, "carry must be inherit or reset, not %q", s.Carry).At("carry")
	}
	if len(s.ID) > agent.MaxIDLength {
		return agent.Errorf(agent.InvalidInput, "id has %d characters; at most %d are taken", len(s.ID), agent.MaxIDLength).At("id")
	}
	if len(s.Labels) > agent.MaxLabels {
		return agent.Errorf(agent.InvalidInput, "labels has %d entries; at most %d are taken", len(s.Labels), agent.MaxLabels).At("labels")
	}
	keys := slices.Sorted(maps.Keys(s.Labels)) //workflowcheck:ignore the order of the map is gone after sorting
	for _, k := range keys {
		if len(k) > maxLabelKey || len(s.Labels[k]) > maxLabel {
			return agent.Errorf(agent.InvalidInput, "a label has at most %d characters and its value %d", maxLabelKey, maxLabel).At("labels")
		}
	}
	if err := s.Limits.Check(); err != nil {
		return err
	}
	return checkInput(s.Input)
}

// checkInput wants something to do, said by a user: parts of other roles are no input.
func checkInput(in agent.Input) error {
	if strings.TrimSpace(in.Text) == "" && len(in.Parts) == 0 && len(in.Data) == 0 && in.Briefing == nil {
		return agent.Errorf(agent.InvalidInput, "input is missing; say what to do in input.text").At("input")
	}
	return checkParts("input.parts", in.Parts)
}

// within puts the name of the field around an error that is about a part of it.
func within(field string, err error) error {
	var e *agent.Error
	if !errors.As(err, &e) {
		return err
	}
	e.Message, e.Path = field+"."+e.Message, strings.TrimSuffix(field+"."+e.Path, ".")
	return e
}

// checkParts takes what a person may say: text.
func checkParts(path string, parts []agent.Part) error {
	for i, p := range parts {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case p.Type != agent.PartText:
			return agent.Errorf(agent.InvalidInput, "%s.type must be text, not %q", at, p.Type).At(at + ".type")
		case strings.TrimSpace(p.Text) == "":
			return agent.Errorf(agent.InvalidInput, "%s.text is blank", at).At(at + ".text")
		}
	}
	return nil
}
