package loop

import (
	"fmt"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// takeQuestionsOrPark handles the calls that suspend the run: questions or, if there are
// none, a park. It reports whether there was one. Then the other calls of the reply are
// skipped.
func (s *step) takeQuestionsOrPark(in ModelReplied) bool {
	// Both: a reply may ask something, and wait for the user as well.
	asked := s.takeQuestions()
	if s.takeHandovers() || asked {
		s.skipPending("the run waits for the user's answer; ask for it again after that")
		return true
	}
	if s.takePark(in.Reply.ParkRequests) {
		s.skipPending("the run was parked; ask for it again after that")
		return true
	}
	return false
}

// takeQuestions opens a request for each valid call of ask_user, and reports whether it
// opened any.
func (s *step) takeQuestions() (asked bool) {
	for i, c := range s.Calls.List {
		if c.State != CallPending || c.Tool != agent.AskUserTool {
			continue
		}
		q, wrong := readQuestion(c.Arguments)
		if wrong != "" {
			s.setResult(i, agent.CallRejected, wrong)
			continue
		}
		r := agent.Request{Type: agent.RequestQuestion, Text: q.Text, Context: q.Context, Choices: q.Choices}
		asked = s.openCallRequest(i, r, q.Text, s.Spec.AnswerTimeouts, agent.InitiatorSelf, "question") || asked
	}
	return asked
}

// openCallRequest lets a call wait for the answer to a request, if the state has space for
// both. words is the part of the request's text that the runtime did not write.
func (s *step) openCallRequest(i int, r agent.Request, words string, p agent.AnswerTimeouts, by agent.Initiator, cause string) (opened bool) {
	o := s.timed(Request{Request: r, CallID: s.Calls.List[i].ID}, p, words)
	if !s.mayKeep(i, o) {
		if !s.leaveOut(i) {
			s.setResult(i, agent.CallRejected, tooMuchAsked)
		}
		return false
	}
	s.Calls.awaitRequest(i, s.openRequest(o, by, cause))
	return true
}

const tooMuchAsked = "Not executed: a person has to be asked, and more would wait for people than can be kept. Ask for fewer calls at once, or for shorter ones."

// takePark parks the run by the first valid call of await_resumption. Errors in others are
// told to the model.
func (s *step) takePark(parkings []wire.ParkRequest) (parked bool) {
	n := 0
	for i, c := range s.Calls.List {
		if c.Tool != agent.AwaitResumptionTool || n >= len(parkings) {
			continue
		}
		p := parkings[n]
		conditions, cut := s.bounded(p.Conditions, s.Parent.parkUntil())
		n++ // counts rejected calls too: parkings has an entry for each call
		switch {
		case parked || c.State != CallPending:
		case p.Err != nil:
			s.setResult(i, agent.CallRejected, p.Err.Message)
		case cut && !s.now().Before(s.Parent.parkUntil()):
			s.setResult(i, agent.CallRejected, "Not executed: you work for a check, and can wait no longer. Answer with what you know.")
		case conditionsJSONLen(conditions) > s.space():
			s.setResult(i, agent.CallRejected, tooLongToWait)
		default:
			parked = true
			s.park(conditions, agent.InitiatorSelf, p.Reason)
			s.Park.cut(cut)
			text := "You were suspended and continue now."
			if len(s.hooksAt(agent.PointBeforeSuspension)) > 0 { // one may deny it, and then a note says so
				text = "You asked to be suspended, and continue now."
			}
			// A daemon's event that waits already may meet the conditions.
			if left := s.matchQueued(); left > 0 {
				text += fmt.Sprintf(" %d events that waited already have too many parts to be compared with your conditions at once. You get them later, one after the other.", left)
			}
			s.setResult(i, agent.CallOK, text)
		}
	}
	return parked
}

// applyRules applies the Spec's rules to the pending calls, and rejects those that they
// deny. It returns the rule that counts for each call, and a number for ruleOf.
func (s *step) applyRules(r wire.Reply) (rulings []agent.Rule, numbers []int) {
	made := map[string]int{}
	for _, t := range s.Calls.ownCounts() {
		made[t.Tool] = t.Calls
	}
	rulings, numbers = make([]agent.Rule, len(s.Calls.List)), make([]int, len(s.Calls.List))
	for i, c := range s.Calls.List {
		if c.State != CallPending {
			if c.State != CallDone { // an open step of a flow, which no count has yet
				made[c.Tool]++
			}
			continue
		}
		var matches []int
		if i < len(r.RuleMatches) {
			matches = r.RuleMatches[i]
		}
		tool, _ := s.Spec.Tool(c.Tool)
		rule, n := s.ruling(matches, made[c.Tool], tool)
		made[c.Tool]++ // calls of this reply count for after_calls too
		if rule.Do == agent.RulingDeny {
			s.setResult(i, agent.CallRejected, denied(rule, n))
		}
		if rulings[i] = rule; n < 0 {
			numbers[i] = ownApproval
		} else if rule.Do != "" {
			numbers[i] = n + 1
		}
	}
	return rulings, numbers
}

// ownApproval is the number of a tool's own approval. Others are indexes of the Spec's rules plus 1, and
// 0 is no rule.
const ownApproval = -1

// ruleOf returns the rule of a number that applyRules has returned.
func (s *State) ruleOf(number int, tool agent.ToolSpec) (rule agent.Rule) {
	switch {
	case number > 0 && number <= len(s.Spec.Rules):
		return s.Spec.Rules[number-1]
	case number == ownApproval && tool.Approval != nil:
		return tool.Approval.Rule()
	}
	return rule
}

// openApprovals opens a request for each call that needs an approval or is carried out by
// the client.
func (s *step) openApprovals(r wire.Reply, rulings []agent.Rule) {
	for i, c := range s.Calls.List {
		if c.State == CallPending {
			s.openApproval(i, r, rulings[i])
		}
	}
}

// openApproval opens a request for a call that needs an approval or is carried out by the
// client.
func (s *step) openApproval(i int, r wire.Reply, rule agent.Rule) {
	c := s.Calls.List[i]
	switch tool, _ := s.Spec.Tool(c.Tool); {
	case tool.Executor == agent.ExecutorClient:
		s.openCallRequest(i, request(r, i, agent.RequestClientTool, c, tool, agent.Rule{}), callNameWords(c), s.answerTimeouts(), agent.InitiatorPolicy, string(agent.RequestClientTool))
	case rule.Do == agent.RulingAsk && !(anyoneMayApprove(rule) && s.allowed(c.Tool)):
		s.openCallRequest(i, request(r, i, agent.RequestApproval, c, tool, rule), callNameWords(c)+rule.Reason, rule.AnswerTimeouts, agent.InitiatorPolicy, string(agent.RequestApproval))
	}
}

func denied(rule agent.Rule, n int) string {
	text := fmt.Sprintf("Permission denied by rule %d.", n)
	if rule.Reason != "" {
		text += " " + rule.Reason
	}
	return text
}

// anyoneMayApprove reports whether a rule names no approvers and needs no digest. Only then
// can "always" approve later calls.
func anyoneMayApprove(rule agent.Rule) bool { return len(rule.Approvers) == 0 && rule.Confirm == "" }

// answerTimeouts returns the agent's answer timeouts, without the default answer: that one
// is for questions.
func (s *step) answerTimeouts() agent.AnswerTimeouts {
	p := s.Spec.AnswerTimeouts
	p.Default = ""
	return p
}

// ruling returns the strictest of the matching rules and the tool's own approval; the zero
// rule if there is none. n is the rule's number, -1 for the tool's. An Otherwise rule counts
// only if no other rule of the same agent matched. The ancestors' rules come first.
func (s *step) ruling(matches []int, made int, tool agent.ToolSpec) (strictest agent.Rule, n int) {
	spoken := false
	for i, rule := range s.Spec.Rules {
		counts := slices.Contains(matches, i) && made >= rule.AfterCalls && !(rule.Otherwise && spoken)
		if counts && rule.Strictness() > strictest.Strictness() {
			strictest, n = rule, i
		}
		spoken = !rule.Otherwise && (spoken || counts) // an Otherwise rule is an agent's last
	}
	if tool.Approval != nil { // on a tie the tool's own approval wins
		if rule := tool.Approval.Rule(); rule.Strictness() >= strictest.Strictness() {
			return rule, -1
		}
	}
	return strictest, n
}

// request returns the request for the i-th call of a reply.
func request(r wire.Reply, i int, t agent.RequestType, c Call, tool agent.ToolSpec, rule agent.Rule) agent.Request {
	text := fmt.Sprintf("Run %s?", callName(c))
	if t == agent.RequestClientTool {
		text = fmt.Sprintf("Run %s and answer with its result.", c.Tool)
	}
	if rule.Reason != "" {
		text += " " + rule.Reason
	}
	arguments := c.Arguments
	if t == agent.RequestApproval { // a client needs all arguments to carry the call out
		arguments = redactedArguments(arguments, tool)
	}
	return agent.Request{
		Type: t, Text: text, Digest: shownOf(r, i, arguments), Confirm: rule.Confirm, Approvers: rule.Approvers,
		Call: &agent.RequestCall{ID: c.ID, Tool: c.Tool, Arguments: arguments},
	}
}
