package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// standin is the models' server, with the Chat Completions API. Its replies depend on the
// seed and on the request. Its failures depend on the seed, the place in the
// conversation, and how often that was asked.
type standin struct {
	plan *plan
	calm atomic.Bool // it no longer fails

	mu     sync.Mutex
	asked  map[string]int
	faults map[fault]int
	calls  int
}

func newStandin(p *plan) *standin {
	return &standin{plan: p, asked: map[string]int{}, faults: map[fault]int{}}
}

// fault is a way in which a model fails.
type fault string

const (
	faultNone     fault = ""
	faultRate     fault = "rate limit"
	faultOverload fault = "overload"
	faultServer   fault = "server error"
	faultDrop     fault = "no answer"   // the connection ends
	faultHang     fault = "hang"        // nothing comes
	faultStall    fault = "stall"       // half a reply, and then nothing
	faultCut      fault = "cut stream"  // half a reply, and then the end
	faultTwice    fault = "said twice"  // each call is in the reply twice, with one id
	faultAgain    fault = "same again"  // the calls of the last reply
	faultBroken   fault = "broken call" // arguments that are not JSON
	faultUnknown  fault = "wrong call"  // a tool that does not exist
	faultSlow     fault = "slow"
)

// faulty says how often a fault is chosen, out of 200.
var faulty = []struct {
	fault fault
	n     int
}{
	{faultRate, 5}, {faultOverload, 4}, {faultServer, 4}, {faultDrop, 3}, {faultHang, 2}, {faultStall, 2}, {faultCut, 5},
	{faultTwice, 3}, {faultAgain, 3}, {faultBroken, 3}, {faultUnknown, 3}, {faultSlow, 5},
}

func pickFault(d *rand.Rand) fault {
	n := d.IntN(200)
	for _, f := range faulty {
		if n -= f.n; n < 0 {
			return f.fault
		}
	}
	return faultNone
}

// question is what the stand-in reads of a request.
type question struct {
	Messages []struct {
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		ToolCalls []offer         `json:"tool_calls"`
	} `json:"messages"`
	Tools []offer `json:"tools"`
}

// offer is a tool, or a call of one.
type offer struct {
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// storyForm matches the beginning of a story's messages; sub-agents have more numbers.
var storyForm = regexp.MustCompile(`story ([0-9.]+)`)

// path returns the place in the tree whose model is called.
func (q *question) path() string {
	for _, m := range q.Messages {
		if f := storyForm.FindSubmatch(m.Content); m.Role == "user" && f != nil {
			return string(f[1])
		}
	}
	return "daemon" // it woke before anybody spoke to it
}

// said counts the replies, in all and since the last user message, and returns the last
// reply's calls.
func (q *question) said() (all, since int, before []offer) {
	for _, m := range q.Messages {
		switch m.Role {
		case "user":
			since = 0
		case "assistant":
			all, since, before = all+1, since+1, m.ToolCalls
		}
	}
	return all, since, before
}

func (s *standin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := q.path()
	place := fmt.Sprintf("%s %d", path, len(q.Messages))
	s.mu.Lock()
	s.asked[place]++
	nth := s.asked[place]
	f := faultNone
	if !s.calm.Load() {
		f = pickFault(s.plan.dice("fault", place, nth))
		s.faults[f]++
	}
	s.calls++
	s.mu.Unlock()
	if refuse(w, r, f) {
		return
	}
	s.stream(w, r, s.reply(&q, path, f), f)
}

// refuse fails before a reply begins, if the fault is of that kind.
func refuse(w http.ResponseWriter, r *http.Request, f fault) bool {
	problem := func(status int, kind string) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"type":%q,"message":"chaos"}}`, kind)
		return true
	}
	switch f {
	case faultRate:
		w.Header().Set("Retry-After", "1")
		return problem(http.StatusTooManyRequests, "rate_limit_error")
	case faultOverload:
		return problem(http.StatusServiceUnavailable, "overloaded_error")
	case faultServer:
		return problem(http.StatusInternalServerError, "server_error")
	case faultDrop:
		panic(http.ErrAbortHandler)
	case faultHang:
		<-r.Context().Done()
		return true
	case faultSlow:
		pause(r.Context(), silence*3/4)
	}
	return false
}

// stream sends a reply in pieces, and breaks off if the fault says so.
func (s *standin) stream(w http.ResponseWriter, r *http.Request, re *reply, f fault) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(choice map[string]any) {
		choice["index"] = 0
		chunk, err := json.Marshal(map[string]any{"object": "chat.completion.chunk", "choices": []any{choice}})
		if err != nil {
			panic(err) // it consists of strings
		}
		fmt.Fprintf(w, "data: %s\n\n", chunk)
		_ = http.NewResponseController(w).Flush() // a client that is gone needs none
	}
	send(map[string]any{"delta": map[string]any{"content": re.Text}})
	switch f {
	case faultStall:
		<-r.Context().Done()
		return
	case faultCut:
		panic(http.ErrAbortHandler)
	}
	for i, c := range re.Calls {
		send(map[string]any{"delta": map[string]any{"tool_calls": []any{map[string]any{
			"index": i, "id": c.ID, "type": "function", "function": map[string]any{"name": c.Tool, "arguments": c.Arguments},
		}}}})
	}
	finish := "stop"
	if len(re.Calls) > 0 {
		finish = "tool_calls"
	}
	send(map[string]any{"delta": map[string]any{}, "finish_reason": finish})
	_, _ = io.WriteString(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10,\"total_tokens\":110}}\n\ndata: [DONE]\n\n")
}

// reply is a model's reply.
type reply struct {
	Text  string
	Calls []call
}

type call struct{ ID, Tool, Arguments string }

const (
	mostReplies = 5 // to one message
	mostCalls   = 3 // in one reply
)

// reply continues the conversation.
func (s *standin) reply(q *question, path string, f fault) *reply {
	all, since, before := q.said()
	// Only a summary, of a compaction or a handoff, is requested without tools.
	if len(q.Tools) == 0 {
		return &reply{Text: `{"summary":"so far ` + path + `"}`}
	}
	d := s.plan.dice("reply", path, all)
	if since >= mostReplies || d.IntN(4) == 0 {
		return &reply{Text: fmt.Sprintf("Done with %s after %d.", path, all)}
	}
	re := &reply{Text: fmt.Sprintf("Turn %d of %s.", all, path)}
	for i := range 1 + d.IntN(mostCalls) {
		name := pickTool(d, q.Tools)
		re.Calls = append(re.Calls, call{fmt.Sprintf("c%d", i), name, arguments(d, name, path, all*10+i)})
	}
	switch f {
	case faultTwice:
		re.Calls = slices.Concat(re.Calls, re.Calls)
	case faultAgain:
		for i, c := range before {
			re.Calls = append(re.Calls, call{fmt.Sprintf("c%d", i), c.Function.Name, c.Function.Arguments})
		}
	case faultBroken:
		re.Calls[0].Arguments = `{"n":`
	case faultUnknown:
		re.Calls[0].Tool = "fly"
	}
	return re
}

// likely weighs the choice of tools; all others weigh 1.
var likely = map[string]int{payTool: 4, bookTool: 3, wireTool: 2, ponderTool: 2, "subagent__" + helperAgent: 2}

func pickTool(d *rand.Rand, tools []offer) string {
	var hat []string
	for _, t := range tools {
		for range max(1, likely[t.Function.Name]) {
			hat = append(hat, t.Function.Name)
		}
	}
	return hat[d.IntN(len(hat))]
}

// arguments returns what a tool takes, or what a model may believe that it takes.
func arguments(d *rand.Rand, name, path string, n int) string {
	v := map[string]any{"n": n}
	switch name {
	case "subagent__" + helperAgent, "subagent__" + scoutAgent:
		v = map[string]any{"task": fmt.Sprintf("story %s.%d", path, n), "background": d.IntN(2) == 0}
	case agent.AskUserTool:
		v = map[string]any{"question": fmt.Sprintf("Which way, in %s? (%d)", path, n)}
	case agent.AwaitResumptionTool:
		v = map[string]any{"reason": "wait", "conditions": parks[d.IntN(len(parks))]}
	case "subagent_pause", "subagent_resume", "subagent_stop":
		v = map[string]any{"child": fmt.Sprintf("%s-%d", helperAgent, 1+d.IntN(2))}
		if name != "subagent_resume" {
			v["reason"] = "chaos"
		}
	case "subagent_list", "subagent_wait":
		v = map[string]any{}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it consists of strings and numbers
	}
	return string(b)
}

// topic is the topic of all events.
const topic = "chaos.bell"

var parks = []any{
	map[string]any{"event": map[string]any{"topic": topic}},
	map[string]any{"after": "3s"},
	map[string]any{"any": []any{map[string]any{"event": map[string]any{"topic": topic}}, map[string]any{"after": "8s"}}},
	map[string]any{"after": "5s", "on_timeout": "resume_with_input", "input": "It is late."},
	map[string]any{},
}

// tell reports how often it was called, and how it failed.
func (s *standin) tell(r *report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Models, r.Faults = s.calls, maps.Clone(s.faults)
}

// listen starts a server, which ends with the program.
func listen(h http.Handler) (url string, stop func(), err error) {
	l, err := loopback("127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // we close it
	return "http://" + l.Addr().String(), func() { _ = server.Close() }, nil
}
