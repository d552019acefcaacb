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
		{agent.Pause, `{"resaon":"lunch"}`, agent.InvalidInput, "resaon"},
		{agent.Pause, `{"reason":" "}`, agent.InvalidInput, "reason"},
		{agent.Pause, `{"reason":null}`, agent.InvalidInput, "reason"},
		{agent.Pause, `{"reason":3}`, agent.InvalidInput, "reason"},
		{agent.Pause, `{"id":"` + strings.Repeat("i", 65) + `"}`, agent.InvalidInput, "id"},
		{agent.Pause, `{"by":""}`, agent.InvalidInput, "by"},
		{agent.Pause, `{"meta":` + deep + `}`, agent.InvalidInput, "meta" + strings.Repeat("[0]", 32)},
		{agent.Pause, `{"reason":"` + long + `"}`, agent.TooLarge, ""},
		{agent.Pause, `"lunch"`, agent.InvalidInput, ""},
		{agent.Pause, `{"reason":"a"} {}`, agent.InvalidInput, ""},
		{agent.Interrupt, `{"grace":"2m"}`, agent.InvalidInput, "grace"},
		{agent.Interrupt, `{"grace":"-1s"}`, agent.InvalidInput, "grace"},
		{agent.Interrupt, `{"grace":"0s"}`, agent.InvalidInput, "grace"},
		{agent.Interrupt, `{"grace":2}`, agent.InvalidInput, "grace"},
		{agent.Interrupt, `{"deadline":"30s"}`, agent.InvalidInput, "deadline"},
		{agent.Resume, `{"suspension":""}`, agent.InvalidInput, "suspension"},
		{agent.Resume, `{"message":"\t"}`, agent.InvalidInput, "message"},
		{agent.Resume, `{"message":""}`, agent.InvalidInput, "message"},
		{agent.Resume, `{"fresh":"yes"}`, agent.InvalidInput, "fresh"},
		{agent.Stop, `{"deadline":"1s"}`, agent.InvalidInput, "deadline"},
		{agent.Stop, `{"deadline":"2h"}`, agent.InvalidInput, "deadline"},
		{agent.Stop, `{"deadline":"soon"}`, agent.InvalidInput, "deadline"},
		{agent.Stop, `{"graceful":true}`, agent.InvalidInput, "graceful"},
		{agent.Cancel, `{"reason":""}`, agent.InvalidInput, "reason"},
		{agent.Cancel, `{"run":null}`, agent.InvalidInput, "run"},
		{agent.Send, ``, agent.InvalidInput, "text"},
		{agent.Send, `{"text":"x","mode":"now"}`, agent.InvalidInput, "mode"},
		{agent.Send, `{"text":" "}`, agent.InvalidInput, "text"},
		{agent.Send, `{"parts":[{"type":"tool_call"}]}`, agent.InvalidInput, "parts[0].type"},
		{agent.Send, `{"parts":[{"type":"text","text":"x"},{"type":"text"}]}`, agent.InvalidInput, "parts[1].text"},
		{agent.Send, `{"parts":[{"kind":"text"}]}`, agent.InvalidInput, "parts[0].kind"},
		{agent.Send, `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, agent.TooLarge, ""},
		{agent.Answer, `{"text":"Rome"}`, agent.InvalidInput, "request"},
		{agent.Answer, `{"request":"q-7"}`, agent.InvalidInput, "text"},
		{agent.Answer, `{"request":"q-7","text":""}`, agent.InvalidInput, "text"},
		{agent.Answer, `{"request":"q-7","text":"  \n"}`, agent.InvalidInput, "text"},
		{agent.Answer, `{"request":"q-7","text":"Rome","choice":0}`, agent.InvalidInput, "text"},
		{agent.Answer, `{"request":"q-7","choice":1,"data":{}}`, agent.InvalidInput, "text"},
		{agent.Answer, `{"request":"q-7","text":"a","choice":1,"data":{}}`, agent.InvalidInput, "text"},
		{agent.Answer, `{"request":"q-7","choice":-1}`, agent.InvalidInput, "choice"},
		{agent.Answer, `{"request":"q-7","choice":1.5}`, agent.InvalidInput, "choice"},
		{agent.Answer, `{"request":"q-7","choice":"Rome"}`, agent.InvalidInput, "choice"},
		{agent.Answer, `{"request":"q-7","data":` + deep + `}`, agent.InvalidInput, "data" + strings.Repeat("[0]", 32)},
		{agent.Answer, `{"request":"q-7","data":null}`, agent.InvalidInput, "data"},
		{agent.Approve, ``, agent.InvalidInput, "request"},
		{agent.Approve, `{"request":""}`, agent.InvalidInput, "request"},
		{agent.Approve, `{"request":"q-7","arguments":[1]}`, agent.InvalidInput, "arguments"},
		{agent.Approve, `{"request":"q-7","arguments":"x"}`, agent.InvalidInput, "arguments"},
		{agent.Approve, `{"request":"q-7","always":1}`, agent.InvalidInput, "always"},
		{agent.Approve, `{"request":"q-7","reason":"x"}`, agent.InvalidInput, "reason"},
		{agent.Approve, `{"request":"q-7","note":"` + long + `"}`, agent.TooLarge, ""},
		{agent.Reject, `{"request":"q-7"}`, agent.InvalidInput, "reason"},
		{agent.Reject, `{"reason":"no"}`, agent.InvalidInput, "request"},
		{agent.Reject, `{"request":"q-7","reason":" "}`, agent.InvalidInput, "reason"},
		{agent.Answers, ``, agent.InvalidInput, "answers"},
		{agent.Answers, `{"answers":[]}`, agent.InvalidInput, "answers"},
		{agent.Answers, `{"answers":[` + strings.Repeat(`{"request":"q-7","approve":{}},`, 64) + `{"request":"q-8","approve":{}}]}`, agent.InvalidInput, "answers"},
		{agent.Answers, `{"answers":[{"approve":{}}]}`, agent.InvalidInput, "answers[0].request"},
		{agent.Answers, `{"answers":[{"request":"q-7"}]}`, agent.InvalidInput, "answers[0].answer"},
		{agent.Answers, `{"answers":[{"request":"q-7","approve":{}},{"request":"q-8","approve":{},"reject":{"reason":"x"}}]}`, agent.InvalidInput, "answers[1].answer"},
		{agent.Answers, `{"answers":[{"request":"q-7","approve":{}},{"request":"q-7","approve":{}}]}`, agent.InvalidInput, "answers[1].request"},
		{agent.Answers, `{"answers":[{"request":"q-7","answer":{"text":"a","choice":1}}]}`, agent.InvalidInput, "answers[0].answer.text"},
		{agent.Answers, `{"answers":[{"request":"q-7","approve":{"arguments":[]}}]}`, agent.InvalidInput, "answers[0].approve.arguments"},
		{agent.Answers, `{"answers":[{"request":"q-7","reject":{}}]}`, agent.InvalidInput, "answers[0].reject.reason"},
		{agent.Answers, `{"answers":[{"request":"q-7","approve":{"sure":true}}]}`, agent.InvalidInput, "answers[0].approve.sure"},
		{agent.Emit, ``, agent.InvalidInput, "topic"},
		{agent.Emit, `{"topic":"bad topic"}`, agent.InvalidInput, "topic"},
		{agent.Emit, `{"topic":".hidden"}`, agent.InvalidInput, "topic"},
		{agent.Emit, `{"topic":"` + strings.Repeat("t", 129) + `"}`, agent.InvalidInput, "topic"},
		{agent.Emit, `{"topic":"x","payload":"` + long + `"}`, agent.TooLarge, ""},
		{"interupt", `{}`, agent.InvalidInput, ""},
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
		{``, agent.PauseOrder{}}, {`{}`, agent.InterruptOrder{}}, {``, agent.ResumeOrder{}}, {``, agent.StopOrder{}}, {``, agent.CancelOrder{}},
		{`{"text":"x"}`, agent.SendOrder{Text: "x"}},
		{`{"request":"q-7","choice":0}`, agent.AnswerOrder{Request: "q-7", Choice: &choice}},
		{`{"request":"q-7","data":0}`, agent.AnswerOrder{Request: "q-7", Data: []byte("0")}},
		{`{"request":"q-7"}`, agent.ApproveOrder{Request: "q-7"}},
		{`{"topic":"orders.paid","payload":3}`, agent.EmitOrder{Topic: "orders.paid", Payload: []byte("3")}},
		{`{"answers":[{"request":"q-7","approve":{}},{"request":"q-8","answer":{"text":"Rome"}}]}`, agent.AnswersOrder{Answers: []agent.AnswerTo{
			{Request: "q-7", Approve: &agent.ApproveOrder{}}, {Request: "q-8", Answer: &agent.AnswerOrder{Text: "Rome"}}}}},
	} {
		got, err := Decode(c.want.Verb(), []byte(c.data))
		require.Nil(t, err, "%s %s: %v", c.want.Verb(), c.data, err)
		require.Equal(t, c.want, got)
	}
}

// A refusal stands in the log: of a run it is the same whichever build goes on with it.
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
