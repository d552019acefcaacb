package signals

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Limits of commands (docs/wire.md §4).
const (
	maxGrace    = agent.Duration(time.Minute)
	minDeadline = agent.Duration(2 * time.Second) // no timer of ours is shorter
	maxDeadline = agent.Duration(time.Hour)
	maxBy       = 256
	maxRequest  = 300 // a request's id with the path to its session
)

func between(path string, d, least, most agent.Duration) error {
	if d != 0 && (d < least || d > most) {
		return agent.Errorf(agent.CodeInvalidInput, "%s is %s; it may be %s to %s", path, d, least, most).WithPath(path)
	}
	return nil
}

func checkSend(o agent.SendCommand) error {
	switch o.Mode {
	case "", agent.SendSteer, agent.SendQueue, agent.SendInterrupt:
	default:
		return agent.Errorf(agent.CodeInvalidInput, "mode must be steer, queue or interrupt, not %q", o.Mode).WithPath("mode")
	}
	if o.Text == "" && len(o.Parts) == 0 {
		return agent.Errorf(agent.CodeInvalidInput, "text is missing; say something").WithPath("text")
	}
	if err := agent.CheckSkillNames(o.Skills); err != nil {
		return err
	}
	return checkParts("parts", o.Parts)
}

func wantRequest(request, path string) error {
	if len(request) > maxRequest {
		return agent.Errorf(agent.CodeInvalidInput, "%s is no request's id: it has %d characters", path, len(request)).WithPath(path)
	}
	if request == "" {
		return agent.Errorf(agent.CodeInvalidInput, "%s is missing; name the request that was shown, such as q-7", path).WithPath(path)
	}
	return nil
}

func checkAnswer(o agent.AnswerCommand) error {
	if err := wantRequest(o.Request, "request"); err != nil {
		return err
	}
	return checkAnswerBody(o, "")
}

func checkAnswerBody(o agent.AnswerCommand, within string) error {
	n := 0
	for _, set := range []bool{o.Text != "", o.Choice != nil, len(o.Data) > 0} {
		if set {
			n++
		}
	}
	if n > 1 || n == 0 && len(o.Parts) == 0 {
		return agent.Errorf(agent.CodeInvalidInput, "%sset exactly one of text, choice and data, not %d of them", within, n).WithPath(within + "text")
	}
	if i := slices.IndexFunc(o.Parts, func(p agent.Part) bool { return p.Type != agent.PartFile }); i >= 0 {
		at := fmt.Sprintf("%sparts[%d].type", within, i)
		return agent.Errorf(agent.CodeInvalidInput, "%s must be file; the answer itself is text, choice or data", at).WithPath(at)
	}
	if o.Choice != nil && *o.Choice < 0 {
		return agent.Errorf(agent.CodeInvalidInput, "%schoice is a number from 0", within).WithPath(within + "choice")
	}
	return checkParts(within+"parts", o.Parts)
}

func checkApprove(o agent.ApproveCommand) error {
	if err := wantRequest(o.Request, "request"); err != nil {
		return err
	}
	return checkApproveBody(o, "")
}

func checkApproveBody(o agent.ApproveCommand, within string) error {
	if a := strings.TrimSpace(string(o.Arguments)); a != "" && !strings.HasPrefix(a, "{") {
		return agent.Errorf(agent.CodeInvalidInput, "%sarguments must be a JSON object", within).WithPath(within + "arguments")
	}
	return nil
}

func checkReject(o agent.RejectCommand) error {
	if err := wantRequest(o.Request, "request"); err != nil {
		return err
	}
	return checkRejectBody(o, "")
}

func checkRejectBody(o agent.RejectCommand, within string) error {
	if o.Reason == "" {
		return agent.Errorf(agent.CodeInvalidInput, "%sreason is missing; the model needs to know why", within).WithPath(within + "reason")
	}
	return nil
}

// maxAnswers limits how many requests one command answers.
const maxAnswers = 64

func checkAnswers(o agent.AnswersCommand) error {
	if o.Token != "" {
		return agent.Errorf(agent.CodeInvalidInput, "token belongs to each of the answers, which has one of its own").WithPath("token")
	}
	if n := len(o.Answers); n == 0 || n > maxAnswers {
		return agent.Errorf(agent.CodeInvalidInput, "answers has %d entries; 1 to %d are taken", n, maxAnswers).WithPath("answers")
	}
	seen := map[string]bool{}
	for i, a := range o.Answers {
		if err := checkOne(a, item(i)); err != nil {
			return err
		}
		if seen[a.Request] {
			return agent.Errorf(agent.CodeInvalidInput, "%srequest: %s is answered twice", item(i), a.Request).WithPath(item(i) + "request")
		}
		seen[a.Request] = true
	}
	return nil
}

func item(i int) string { return "answers[" + strconv.Itoa(i) + "]." }

func checkOne(a agent.AnswerTo, within string) error {
	if err := wantRequest(a.Request, within+"request"); err != nil {
		return err
	}
	n := 0
	for _, set := range []bool{a.Answer != nil, a.Approve != nil, a.Reject != nil} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return agent.Errorf(agent.CodeInvalidInput, "%sset exactly one of answer, approve and reject, not %d of them", within, n).WithPath(within + "answer")
	case a.Answer != nil:
		return checkAnswerBody(*a.Answer, within+"answer.")
	case a.Approve != nil:
		return checkApproveBody(*a.Approve, within+"approve.")
	}
	return checkRejectBody(*a.Reject, within+"reject.")
}

func checkEmit(o agent.EmitCommand) error {
	if err := agent.CheckTopic(o.Topic); err != nil {
		return err.WithPath("topic")
	}
	return nil
}
