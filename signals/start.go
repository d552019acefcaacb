package signals

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
)

// DecodeStart decodes a run's input strictly (docs/wire.md §3). Its errors are
// [agent.CodeInvalidInput], [agent.CodeTooLarge] and [agent.CodeIncompatible], with the
// path of the field. After an error, the start has what could be decoded.
func DecodeStart(data []byte) (agent.Start, *agent.Error) {
	return DecodeStartAt(math.MaxInt, data)
}

// DecodeStartAt decodes as a build of a revision did, like [DecodeAt].
func DecodeStartAt(revision int, data []byte) (agent.Start, *agent.Error) {
	var s agent.Start
	err := durable.DecodeAt(revision, data, &s, agent.MaxPayload)
	if err == nil {
		err = checkStart(s)
	}
	if err == nil && s.Park != nil {
		park, bad := completed(*s.Park)
		s.Park, err = &park, within("park", bad)
	}
	return s, durable.Within("start refused", err)
}

// Labels are in every listing, so they are short.
const (
	maxLabelKey = 64
	maxLabel    = 256
)

// checkStart refuses an invalid start.
func checkStart(s agent.Start) error {
	if s.V > agent.Version {
		return agent.Errorf(agent.CodeIncompatible, "v is %d; this build reads up to %d", s.V, agent.Version).WithPath("v")
	}
	if s.Agent == "" {
		return agent.Errorf(agent.CodeInvalidInput, "agent is missing; name one, as in {\"agent\":\"reviewer\",\"input\":{\"text\":\"…\"}}").WithPath("agent")
	}
	if err := agent.CheckName(s.Agent); err != nil {
		return err
	}
	if err := checkStartedBy(s.By); err != nil {
		return err
	}
	if s.Import != "" {
		return checkImport(s)
	}
	if len(s.Answers) > 0 {
		return agent.Errorf(agent.CodeInvalidInput, "answers can only come with import: a new run has asked nothing").WithPath("answers")
	}
	switch s.Carry {
	case "", agent.CarryInherit, agent.CarryReset, agent.CarryCompact:
	default:
		return agent.Errorf(agent.CodeInvalidInput, "carry must be inherit, reset or compact, not %q", s.Carry).WithPath("carry")
	}
	if s.From != nil {
		if s.Carry == agent.CarryReset {
			return agent.Errorf(agent.CodeInvalidInput, "carry can't be reset beside from: a run that keeps nothing begins nowhere").WithPath("carry")
		}
		if err := s.From.Check(); err != nil {
			return err
		}
		// Else the next message, whoever sends it, would become the input.
		if s.From.ReplaceInput && s.Input.Text == "" && len(s.Input.Parts) == 0 && len(s.Input.Data) == 0 {
			return agent.Errorf(agent.CodeInvalidInput, "from.replace_input needs an input: set input.text or input.data").WithPath("input")
		}
	}
	if len(s.ID) > agent.MaxIDLength {
		return agent.Errorf(agent.CodeInvalidInput, "id has %d characters; at most %d are taken", len(s.ID), agent.MaxIDLength).WithPath("id")
	}
	if len(s.Labels) > agent.MaxLabels {
		return agent.Errorf(agent.CodeInvalidInput, "labels has %d entries; at most %d are taken", len(s.Labels), agent.MaxLabels).WithPath("labels")
	}
	keys := slices.Sorted(maps.Keys(s.Labels)) //workflowcheck:ignore the order of the map is gone after sorting
	for _, k := range keys {
		if len(k) > maxLabelKey || len(s.Labels[k]) > maxLabel {
			return agent.Errorf(agent.CodeInvalidInput, "a label has at most %d characters and its value %d", maxLabelKey, maxLabel).WithPath("labels")
		}
	}
	if err := s.Limits.Check(); err != nil {
		return err
	}
	if err := checkTurns(s); err != nil {
		return err
	}
	if empty(s.Input) {
		return nil // with a checkpoint or for a daemon no input is needed, and only the run knows that
	}
	return checkInput(s.Input)
}

// maxJudgeTokens bounds what the judge of a start may write, since the agent's author has not set it.
const maxJudgeTokens = 8192

// checkTurns checks what the start says about the run's turns: skills, files that match some, and a judge.
func checkTurns(s agent.Start) error {
	if err := agent.CheckSkillNames(s.Skills); err != nil {
		return err
	}
	if s.Judge != nil {
		if err := s.Judge.Check(); err != nil {
			return err
		}
		if n := s.Judge.MaxOutputTokens; n > maxJudgeTokens {
			return agent.Errorf(agent.CodeInvalidInput, "judge.max_output_tokens is %d; the judge of a start has at most %d", n, maxJudgeTokens).WithPath("judge.max_output_tokens")
		}
	}
	return agent.CheckWorkingFiles(s.WorkingFiles)
}

// checkStartedBy refuses a name that would give a session the memory of somebody else: the one that
// stands for starts without a name, and one too long to be kept whole.
func checkStartedBy(by string) error {
	switch {
	case len(by) > maxBy:
		return agent.Errorf(agent.CodeInvalidInput, "by has %d characters; at most %d are taken", len(by), maxBy).WithPath("by")
	case by == agent.AnonymousPrincipal:
		return agent.Errorf(agent.CodeInvalidInput, "by can't be %s: this name stands for starts without one; leave by out, or give another name", by).WithPath("by")
	}
	return nil
}

// importForm matches the name of a chunk.
var importForm = regexp.MustCompile(`^[0-9a-f]{32}-[0-9a-f]{64}$`)

// checkImport refuses fields that an imported run brings with it.
func checkImport(s agent.Start) error {
	if !importForm.MatchString(s.Import) {
		return agent.Errorf(agent.CodeInvalidInput, "import must be the name of an export in the store; fermata import makes it").WithPath("import")
	}
	plain := s.Carry == "" && s.ID == "" && s.From == nil && s.Park == nil && s.Judge == nil && len(s.Skills)+len(s.WorkingFiles) == 0 && s.Limits == agent.Limits{} && len(s.Labels) == 0
	if !plain || !empty(s.Input) {
		return agent.Errorf(agent.CodeInvalidInput, "beside import only agent, answers, by and meta are allowed: an imported run keeps everything else").WithPath("import")
	}
	if len(s.Answers) == 0 {
		return nil
	}
	return CheckImportAnswers(s.Answers)
}

// CheckImportAnswers returns a [agent.CodeInvalidInput] error if answers can't come with an import,
// whatever they answer.
func CheckImportAnswers(answers []agent.AnswerTo) error {
	if err := checkAnswers(agent.AnswersCommand{Answers: answers}); err != nil {
		return err
	}
	for i, a := range answers {
		for _, c := range a.Commands() {
			if c.Header().Token != "" {
				return agent.Errorf(agent.CodeInvalidInput, "%stoken can't come with an import: a token is made for the run that takes it; import the session first, and decide there", item(i)).WithPath(item(i) + "token")
			}
		}
		if a.Answer != nil && len(a.Answer.Parts) > 0 {
			return agent.Errorf(agent.CodeInvalidInput, "%sanswer.parts can't come with an import; import the session first, and answer with files there", item(i)).WithPath(item(i) + "answer.parts")
		}
	}
	return nil
}

func empty(in agent.Input) bool {
	return in.Text == "" && len(in.Parts) == 0 && len(in.Data) == 0 && in.Briefing == nil
}

// checkInput requires something to do. Only users' parts are input.
func checkInput(in agent.Input) error {
	if strings.TrimSpace(in.Text) == "" && len(in.Parts) == 0 && len(in.Data) == 0 && in.Briefing == nil {
		return agent.Errorf(agent.CodeInvalidInput, "input is missing; say what to do in input.text").WithPath("input")
	}
	if in.Briefing != nil {
		if err := checkBriefing(in.Briefing); err != nil {
			return err
		}
	}
	return checkParts("input.parts", in.Parts)
}

// checkBriefing requires a whole handoff: one that decodes as it is encoded.
func checkBriefing(h *agent.Handoff) error {
	raw, err := json.Marshal(h)
	if err == nil {
		err = durable.Decode(raw, new(agent.Handoff), agent.MaxPayload)
	}
	if err != nil && agent.CodeOf(err) != agent.CodeTooLarge { // its size is checked elsewhere; here some characters take six bytes
		return agent.Errorf(agent.CodeInvalidInput, "input.briefing is no whole handoff, as a run that was stopped leaves it: %w", err).WithPath("input.briefing")
	}
	return nil
}

// within adds the name of the field to an error about a part of it.
func within(field string, err error) error {
	var e *agent.Error
	if !errors.As(err, &e) {
		return err
	}
	e.Message, e.Path = field+"."+e.Message, strings.TrimSuffix(field+"."+e.Path, ".")
	return e
}

// checkParts accepts text and files, which is what a person may send.
func checkParts(path string, parts []agent.Part) error {
	files := 0
	for i, p := range parts {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case p.Call != nil || p.Result != nil || len(p.Raw)+len(p.Signature)+len(p.Redacted)+len(p.Phase)+len(p.ProviderID)+len(p.Citations) > 0 || p.Uncited != 0:
			return agent.Errorf(agent.CodeInvalidInput, "%s has a field that only a model's or a tool's part has; send text, or a file", at).WithPath(at)
		case p.Type == agent.PartFile && p.File != nil:
			if err := p.File.Check(); err != nil {
				return within(at+".file", err)
			}
			files++
		case p.Type != agent.PartText || p.File != nil:
			return agent.Errorf(agent.CodeInvalidInput, "%s.type must be text, or file with a file, not %q", at, p.Type).WithPath(at + ".type")
		case strings.TrimSpace(p.Text) == "":
			return agent.Errorf(agent.CodeInvalidInput, "%s.text is blank", at).WithPath(at + ".text")
		}
	}
	if files > agent.MaxFiles {
		return agent.Errorf(agent.CodeInvalidInput, "%s has %d files; a message has at most %d", path, files, agent.MaxFiles).WithPath(path)
	}
	return nil
}
