package loop

import (
	"fmt"
	"slices"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/wire"
)

// takeQuestionsOrPark takes what stops a turn before its calls are made: questions first,
// a park else. All other calls of the reply are not made.
func (s *step) takeQuestionsOrPark(in ModelReplied) bool {
	if s.takeQuestions() {
		s.skipPending("the run waits for the user's answer; ask for it again after that")
		return true
	}
	if s.takePark(in.Reply.ParkRequests) {
		s.skipPending("the run was parked; ask for it again after that")
		return true
	}
	return false
}

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

// openCallRequest makes a call wait for the answer to a request, if both can be kept. words are what
// somebody else than the runtime says in its text.
func (s *step) openCallRequest(i int, r agent.Request, words string, p agent.AnswerTimeouts, by agent.Initiator, cause string) (opened bool) {
	o := Request{Request: r, CallID: s.Calls.List[i].ID}.sized(words)
	if !s.mayKeep(i, o) {
		s.setResult(i, agent.CallRejected, tooMuchAsked)
		return false
	}
	s.Calls.awaitRequest(i, s.openRequest(o, p, by, cause))
	return true
}

const tooMuchAsked = "Not executed: a person has to be asked, and more would wait for people than can be kept. Ask for fewer calls at once, or for shorter ones."

// takePark takes the first call of await_resumption that can be meant; faults are
// told to the model, which goes on.
func (s *step) takePark(parkings []wire.ParkRequest) (parked bool) {
	n := 0
	for i, c := range s.Calls.List {
		if c.Tool != agent.AwaitResumptionTool || n >= len(parkings) {
			continue
		}
		p := parkings[n]
		n++
		switch {
		case parked || c.State != CallPending:
		case p.Err != nil:
			s.setResult(i, agent.CallRejected, p.Err.Message)
		case conditionsJSONLen(p.Conditions) > s.space():
			s.setResult(i, agent.CallRejected, tooLongToWait)
		default:
			parked = true
			s.park(p.Conditions, agent.InitiatorSelf, p.Reason)
			text := "You were suspended, and go on now."
			if left := s.matchQueued(); left > 0 {
				text += fmt.Sprintf(" %d events that waited already have too many parts to be compared with your conditions at once. You get them later, one after the other.", left)
			}
			s.setResult(i, agent.CallOK, text)
		}
	}
	return parked
}

// applyRules applies the Spec's rules to the calls that are left, deny over ask over allow,
// and rejects what they deny. It returns what they say about each call.
func (s *step) applyRules(r wire.Reply) []agent.Rule {
	made := map[string]int{}
	for _, t := range s.Calls.ownCounts() {
		made[t.Tool] = t.Calls
	}
	rulings := make([]agent.Rule, len(s.Calls.List))
	for i, c := range s.Calls.List {
		if c.State != CallPending {
			continue
		}
		var matches []int
		if i < len(r.RuleMatches) {
			matches = r.RuleMatches[i]
		}
		tool, _ := s.Spec.Tool(c.Tool)
		rule, n := s.ruling(matches, made[c.Tool], tool)
		made[c.Tool]++
		if rule.Do == agent.RulingDeny {
			s.setResult(i, agent.CallRejected, denied(rule, n))
		}
		rulings[i] = rule
	}
	return rulings
}

// openApprovals asks for the calls that rules want to be approved, and those that the client
// carries out.
func (s *step) openApprovals(r wire.Reply, rulings []agent.Rule) {
	for i, c := range s.Calls.List {
		if c.State != CallPending {
			continue
		}
		rule := rulings[i]
		switch tool, _ := s.Spec.Tool(c.Tool); {
		case tool.Executor == agent.ExecutorClient:
			s.openCallRequest(i, request(r, i, agent.RequestClientTool, c, tool, agent.Rule{}), "", s.answerTimeouts(), agent.InitiatorPolicy, string(agent.RequestClientTool))
		case rule.Do == agent.RulingAsk && !(anyoneMayApprove(rule) && slices.Contains(s.Requests.Always, c.Tool)):
			s.openCallRequest(i, request(r, i, agent.RequestApproval, c, tool, rule), rule.Reason, rule.AnswerTimeouts, agent.InitiatorPolicy, string(agent.RequestApproval))
		}
	}
}

func denied(rule agent.Rule, n int) string {
	text := fmt.Sprintf("Permission denied by rule %d.", n)
	if rule.Reason != "" {
		text += " " + rule.Reason
	}
	return text
}

// anyoneMayApprove reports whether anybody may approve what a rule asks about, and for all that
// is still to come.
func anyoneMayApprove(rule agent.Rule) bool { return len(rule.Approvers) == 0 && rule.Confirm == "" }

// answerTimeouts is how long a request waits that has no default answer of its own.
func (s *step) answerTimeouts() agent.AnswerTimeouts {
	p := s.Spec.AnswerTimeouts
	p.Default = ""
	return p
}

// ruling is the strictest of the rules that match and of what the tool says itself; the zero
// rule if nothing is said. Of rules that ask, one that not everybody may answer is the
// stricter. An agent's rule for all else counts where none of its others does; those of the
// agents above come first, and each has its own.
func (s *step) ruling(matches []int, made int, tool agent.ToolSpec) (strictest agent.Rule, n int) {
	spoken := false
	for i, rule := range s.Spec.Rules {
		counts := slices.Contains(matches, i) && made >= rule.AfterCalls && !(rule.Otherwise && spoken)
		if counts && rule.Strictness() > strictest.Strictness() {
			strictest, n = rule, i
		}
		spoken = !rule.Otherwise && (spoken || counts)
	}
	if tool.Approval != nil { // its own approvers count before those of an equal rule
		if rule := tool.Approval.Rule(); rule.Strictness() >= strictest.Strictness() {
			return rule, -1
		}
	}
	return strictest, n
}

// request is what a person is shown of a call, the i-th of a reply.
func request(r wire.Reply, i int, t agent.RequestType, c Call, tool agent.ToolSpec, rule agent.Rule) agent.Request {
	text := fmt.Sprintf("Run %s?", c.Tool)
	if t == agent.RequestClientTool {
		text = fmt.Sprintf("Run %s and answer with its result.", c.Tool)
	}
	if rule.Reason != "" {
		text += " " + rule.Reason
	}
	arguments := c.Arguments
	if t == agent.RequestApproval { // who carries a call out has to know it whole
		arguments = redactedArguments(arguments, tool)
	}
	return agent.Request{
		Type: t, Text: text, Digest: shownOf(r, i, arguments), Confirm: rule.Confirm, Approvers: rule.Approvers,
		Call: &agent.RequestCall{ID: c.ID, Tool: c.Tool, Arguments: arguments},
	}
}
