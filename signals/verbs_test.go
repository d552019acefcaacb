package signals

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

// refused is what is wrong with a payload: the code and the path of the field.
type refused struct {
	verb agent.Verb
	data string
	code agent.Code
	path string
}

// What can not be meant is refused with its code and the path of the field (HL-38,
// HL-61, HX-27, HX-60, OA-14, OA-45, OA-74, PA-14).
func TestVerbsThatCantBeMeant(t *testing.T) {
	deep := strings.Repeat("[", 40) + strings.Repeat("]", 40)
	long := strings.Repeat("x", 64<<10)
	for _, c := range []refused{
		{agent.VerbPause, `{"resaon":"lunch"}`, agent.CodeInvalidInput, "resaon"},
		{agent.VerbPause, `{"reason":" "}`, agent.CodeInvalidInput, "reason"},
		{agent.VerbPause, `{"reason":null}`, agent.CodeInvalidInput, "reason"},
		{agent.VerbPause, `{"reason":3}`, agent.CodeInvalidInput, "reason"},
		{agent.VerbPause, `{"id":"` + strings.Repeat("i", 65) + `"}`, agent.CodeInvalidInput, "id"},
		{agent.VerbPause, `{"by":""}`, agent.CodeInvalidInput, "by"},
		{agent.VerbPause, `{"meta":` + deep + `}`, agent.CodeInvalidInput, "meta" + strings.Repeat("[0]", 32)},
		{agent.VerbPause, `{"reason":"` + long + `"}`, agent.CodeTooLarge, ""},
		{agent.VerbPause, `"lunch"`, agent.CodeInvalidInput, ""},
		{agent.VerbPause, `{"reason":"a"} {}`, agent.CodeInvalidInput, ""},
		{agent.VerbInterrupt, `{"grace":"2m"}`, agent.CodeInvalidInput, "grace"},
		{agent.VerbInterrupt, `{"grace":"-1s"}`, agent.CodeInvalidInput, "grace"},
		{agent.VerbInterrupt, `{"grace":"0s"}`, agent.CodeInvalidInput, "grace"},
		{agent.VerbInterrupt, `{"grace":2}`, agent.CodeInvalidInput, "grace"},
		{agent.VerbInterrupt, `{"deadline":"30s"}`, agent.CodeInvalidInput, "deadline"},
		{agent.VerbResume, `{"suspension":""}`, agent.CodeInvalidInput, "suspension"},
		{agent.VerbResume, `{"message":"\t"}`, agent.CodeInvalidInput, "message"},
		{agent.VerbResume, `{"message":""}`, agent.CodeInvalidInput, "message"},
		{agent.VerbResume, `{"from_summary":"yes"}`, agent.CodeInvalidInput, "from_summary"},
		{agent.VerbResume, `{"parts":[{"type":"tool_call"}]}`, agent.CodeInvalidInput, "parts[0].type"},
		{agent.VerbAnswer, `{"request":"q-7","parts":[{"type":"text","text":"x"}]}`, agent.CodeInvalidInput, "parts[0].type"},
		{agent.VerbAnswer, `{"request":"q-7","text":"x","parts":[{"type":"file"}]}`, agent.CodeInvalidInput, "parts[0].type"},
		{agent.VerbAnswers, `{"answers":[{"request":"q-7","answer":{"parts":[{"type":"file","file":{"session":"s"}}]}}]}`, agent.CodeInvalidInput, "answers[0].answer.parts[0].file.digest"},
		{agent.VerbStop, `{"deadline":"1s"}`, agent.CodeInvalidInput, "deadline"},
		{agent.VerbStop, `{"deadline":"2h"}`, agent.CodeInvalidInput, "deadline"},
		{agent.VerbStop, `{"deadline":"soon"}`, agent.CodeInvalidInput, "deadline"},
		{agent.VerbStop, `{"graceful":true}`, agent.CodeInvalidInput, "graceful"},
		{agent.VerbStop, `{"reason":3}`, agent.CodeInvalidInput, "reason"},
		{agent.VerbStop, `{"reason":null}`, agent.CodeInvalidInput, "reason"},
		{agent.VerbCancel, `{"run":null}`, agent.CodeInvalidInput, "run"},
		{agent.VerbSend, ``, agent.CodeInvalidInput, "text"},
		{agent.VerbSend, `{"text":"x","mode":"now"}`, agent.CodeInvalidInput, "mode"},
		{agent.VerbSend, `{"text":" "}`, agent.CodeInvalidInput, "text"},
		{agent.VerbSend, `{"parts":[{"type":"tool_call"}]}`, agent.CodeInvalidInput, "parts[0].type"},
		{agent.VerbSend, `{"parts":[{"type":"text","text":"x"},{"type":"text"}]}`, agent.CodeInvalidInput, "parts[1].text"},
		{agent.VerbSend, `{"parts":[{"kind":"text"}]}`, agent.CodeInvalidInput, "parts[0].kind"},
		{agent.VerbSend, `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, agent.CodeTooLarge, ""},
		{agent.VerbAnswer, `{"text":"Rome"}`, agent.CodeInvalidInput, "request"},
		{agent.VerbAnswer, `{"request":"q-7"}`, agent.CodeInvalidInput, "text"},
		{agent.VerbAnswer, `{"request":"q-7","text":""}`, agent.CodeInvalidInput, "text"},
		{agent.VerbAnswer, `{"request":"q-7","text":"  \n"}`, agent.CodeInvalidInput, "text"},
		{agent.VerbAnswer, `{"request":"q-7","text":"Rome","choice":0}`, agent.CodeInvalidInput, "text"},
		{agent.VerbAnswer, `{"request":"q-7","choice":1,"data":{}}`, agent.CodeInvalidInput, "text"},
		{agent.VerbAnswer, `{"request":"q-7","text":"a","choice":1,"data":{}}`, agent.CodeInvalidInput, "text"},
		{agent.VerbAnswer, `{"request":"q-7","choice":-1}`, agent.CodeInvalidInput, "choice"},
		{agent.VerbAnswer, `{"request":"q-7","choice":1.5}`, agent.CodeInvalidInput, "choice"},
		{agent.VerbAnswer, `{"request":"q-7","choice":"Rome"}`, agent.CodeInvalidInput, "choice"},
		{agent.VerbAnswer, `{"request":"q-7","data":` + deep + `}`, agent.CodeInvalidInput, "data" + strings.Repeat("[0]", 32)},
		{agent.VerbAnswer, `{"request":"q-7","data":null}`, agent.CodeInvalidInput, "data"},
		{agent.VerbApprove, ``, agent.CodeInvalidInput, "request"},
		{agent.VerbApprove, `{"request":""}`, agent.CodeInvalidInput, "request"},
		{agent.VerbApprove, `{"request":"q-7","arguments":[1]}`, agent.CodeInvalidInput, "arguments"},
		{agent.VerbApprove, `{"request":"q-7","arguments":"x"}`, agent.CodeInvalidInput, "arguments"},
		{agent.VerbApprove, `{"request":"q-7","always":1}`, agent.CodeInvalidInput, "always"},
		{agent.VerbApprove, `{"request":"q-7","reason":"x"}`, agent.CodeInvalidInput, "reason"},
		{agent.VerbApprove, `{"request":"q-7","note":"` + long + `"}`, agent.CodeTooLarge, ""},
		{agent.VerbReject, `{"request":"q-7"}`, agent.CodeInvalidInput, "reason"},
		{agent.VerbReject, `{"reason":"no"}`, agent.CodeInvalidInput, "request"},
		{agent.VerbReject, `{"request":"q-7","reason":" "}`, agent.CodeInvalidInput, "reason"},
		{agent.VerbAnswers, ``, agent.CodeInvalidInput, "answers"},
		{agent.VerbAnswers, `{"answers":[]}`, agent.CodeInvalidInput, "answers"},
		{agent.VerbAnswers, `{"answers":[` + strings.Repeat(`{"request":"q-7","approve":{}},`, 64) + `{"request":"q-8","approve":{}}]}`, agent.CodeInvalidInput, "answers"},
		{agent.VerbAnswers, `{"answers":[{"approve":{}}]}`, agent.CodeInvalidInput, "answers[0].request"},
		{agent.VerbAnswers, `{"answers":[{"request":"q-7"}]}`, agent.CodeInvalidInput, "answers[0].answer"},
		{agent.VerbAnswers, `{"answers":[{"request":"q-7","approve":{}},{"request":"q-8","approve":{},"reject":{"reason":"x"}}]}`, agent.CodeInvalidInput, "answers[1].answer"},
		{agent.VerbAnswers, `{"answers":[{"request":"q-7","approve":{}},{"request":"q-7","approve":{}}]}`, agent.CodeInvalidInput, "answers[1].request"},
		{agent.VerbAnswers, `{"answers":[{"request":"q-7","answer":{"text":"a","choice":1}}]}`, agent.CodeInvalidInput, "answers[0].answer.text"},
		{agent.VerbAnswers, `{"answers":[{"request":"q-7","approve":{"arguments":[]}}]}`, agent.CodeInvalidInput, "answers[0].approve.arguments"},
		{agent.VerbAnswers, `{"answers":[{"request":"q-7","reject":{}}]}`, agent.CodeInvalidInput, "answers[0].reject.reason"},
		{agent.VerbAnswers, `{"answers":[{"request":"q-7","approve":{"sure":true}}]}`, agent.CodeInvalidInput, "answers[0].approve.sure"},
		{agent.VerbEmit, ``, agent.CodeInvalidInput, "topic"},
		{agent.VerbEmit, `{"topic":"bad topic"}`, agent.CodeInvalidInput, "topic"},
		{agent.VerbEmit, `{"topic":".hidden"}`, agent.CodeInvalidInput, "topic"},
		{agent.VerbEmit, `{"topic":"` + strings.Repeat("t", 129) + `"}`, agent.CodeInvalidInput, "topic"},
		{agent.VerbEmit, `{"topic":"x","payload":"` + long + `"}`, agent.CodeTooLarge, ""},
		{"interupt", `{}`, agent.CodeInvalidInput, ""},
	} {
		_, err := Decode(c.verb, []byte(c.data))
		require.NotNil(t, err, "%s %.80s", c.verb, c.data)
		require.Equal(t, c.code, err.Code, "%s %.80s: %v", c.verb, c.data, err)
		require.Equal(t, c.path, err.Path, "%s %.80s: %v", c.verb, c.data, err)
		require.Contains(t, err.Message, string(c.verb)+" refused: ")
	}
}

// Whoever types a verb writes no more than is needed.
func TestVerbsInShort(t *testing.T) {
	choice := 0
	for _, c := range []struct {
		data string
		want agent.Command
	}{
		{``, agent.PauseCommand{}}, {`{}`, agent.InterruptCommand{}}, {``, agent.ResumeCommand{}}, {``, agent.StopCommand{}}, {``, agent.CancelCommand{}},
		{`{"reason":" "}`, agent.StopCommand{Reason: " "}}, {`{"reason":""}`, agent.CancelCommand{}}, // each falls back to a reason
		{`{"text":"x"}`, agent.SendCommand{Text: "x"}},
		{`{"request":"q-7","choice":0}`, agent.AnswerCommand{Request: "q-7", Choice: &choice}},
		{`{"request":"q-7","data":0}`, agent.AnswerCommand{Request: "q-7", Data: []byte("0")}},
		{`{"request":"q-7"}`, agent.ApproveCommand{Request: "q-7"}},
		{`{"topic":"orders.paid","payload":3}`, agent.EmitCommand{Topic: "orders.paid", Payload: []byte("3")}},
		{`{"answers":[{"request":"q-7","approve":{}},{"request":"q-8","answer":{"text":"Rome"}}]}`, agent.AnswersCommand{Answers: []agent.AnswerTo{
			{Request: "q-7", Approve: &agent.ApproveCommand{}}, {Request: "q-8", Answer: &agent.AnswerCommand{Text: "Rome"}}}}},
	} {
		got, err := Decode(c.want.Verb(), []byte(c.data))
		require.Nil(t, err, "%s %s: %v", c.want.Verb(), c.data, err)
		require.Equal(t, c.want, got)
	}
}

// A refusal stands in the log: of a run it is the same whichever build continues with it.
func TestTheRefusalOfAVerbIsThatOfTheRevision(t *testing.T) {
	const whisper, later = agent.Verb("whisper"), 1000
	_, before := DecodeAt(later-1, whisper, []byte("{}"))
	all := Verbs
	Verbs, since[whisper] = append(Verbs[:len(Verbs):len(Verbs)], whisper), later
	t.Cleanup(func() { Verbs = all; delete(since, whisper) })
	_, after := DecodeAt(later-1, whisper, []byte("{}"))
	require.Equal(t, before, after)
	_, newer := DecodeAt(later, "shout", []byte("{}"))
	require.ErrorContains(t, newer, "emit, whisper")
}
