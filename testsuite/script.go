package testsuite

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// Script is a model that answers from a script. The conversation itself says which reply
// is next, so another worker can continue after a crash. If it is asked for a summary of
// a conversation, it writes a fixed one, unless a rule matches. That uses up no reply.
// A Script is safe for concurrent use.
type Script struct {
	file file
	info model.Info

	mu       sync.Mutex
	failed   map[string]int // failures that were returned, by conversation and place
	requests []model.Request
}

// file is a script's YAML.
type file struct {
	Price   price   `yaml:"price"`
	Window  int     `yaml:"window"`
	Rules   []Reply `yaml:"rules"`
	Replies []Reply `yaml:"replies"`
}

type price struct {
	Input  float64 `yaml:"input"` // USD for a million tokens
	Output float64 `yaml:"output"`
}

// Reply is one reply of a [Script].
type Reply struct {
	// Match is a regular expression for the last message. If that is only the runtime's
	// note that the run continues, and no rule matches the note, the message before
	// counts. A reply with a Match is a rule; in a file it is under rules.
	Match string `yaml:"match"`
	// Text is the reply's text. TextBytes adds that many bytes of random text.
	Text      string `yaml:"text"`
	TextBytes int    `yaml:"text_bytes"`
	Thinking  string `yaml:"thinking"`
	Calls     []Call `yaml:"calls"`
	// Citations are the sources that the text cites. Start and End count bytes.
	Citations []agent.Citation `yaml:"citations"`
	// Finish is why the model stopped; empty means stop, or tool_calls if there are
	// calls.
	Finish string `yaml:"finish"`
	Usage  Usage  `yaml:"usage"`
	// Fail are failures before the reply, one for each attempt.
	Fail []Failure `yaml:"fail"`
	// Delay is the wait before the reply begins, and Stream the wait between words.
	Delay  time.Duration `yaml:"delay"`
	Stream time.Duration `yaml:"stream"`
	// Repeat is how often the reply is given in a row; zero means once.
	Repeat int `yaml:"repeat"`

	match *regexp.Regexp
}

// Call is a tool call of a [Reply].
type Call struct {
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
	// Raw is sent instead of Arguments, whether it is valid JSON or not.
	Raw string `yaml:"raw"`
	ID  string `yaml:"id"` // the provider's
}

// Usage is the usage of a [Reply]. The zero value means that it is counted from the
// texts.
type Usage struct {
	Input     int64 `yaml:"input"`
	Output    int64 `yaml:"output"`
	CacheRead int64 `yaml:"cache_read"`
}

// Failure is an error of the provider.
type Failure struct {
	Kind       agent.FaultKind `yaml:"kind"`
	Message    string          `yaml:"message"`
	HTTP       int             `yaml:"http"`
	RetryAfter time.Duration   `yaml:"retry_after"`
}

// NewScript returns a model with these replies, one for each turn. Replies with a Match
// are rules, which come first: the first matching rule is the answer. An invalid Match
// panics.
func NewScript(replies ...Reply) *Script {
	var f file
	for _, r := range replies {
		if r.Match != "" {
			f.Rules = append(f.Rules, r)
		} else {
			f.Replies = append(f.Replies, r)
		}
	}
	s, err := newScript(f)
	if err != nil {
		panic(err) // a Match of the caller's own that is no regular expression
	}
	return s
}

// maxScript is far above any script that people write. It limits what a wrong path can
// make us read.
const maxScript = 4 << 20

// LoadScript reads a script from a YAML file of at most 4 MiB. Unknown keys are an error,
// with their line.
func LoadScript(path string) (*Script, error) {
	data, err := readScript(path)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "reading the script: %w", err)
	}
	if len(data) > maxScript {
		return nil, agent.Errorf(agent.CodeTooLarge, "%s has more than %d bytes: is it a script?", path, maxScript)
	}
	var f file
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	// A misspelt key would silently change the script.
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return nil, scriptFault(path, err)
	}
	s, err := newScript(f)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInvalidInput, "script %s: %w", path, err)
	}
	return s, nil
}

func readScript(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxScript+1))
}

func newScript(f file) (*Script, error) {
	var replies []Reply
	for _, r := range f.Replies {
		// Repeats become entries, so the turn's number is the index.
		for range max(1, r.Repeat) {
			replies = append(replies, r)
		}
	}
	f.Replies = replies
	for i := range f.Rules {
		m, err := regexp.Compile(f.Rules[i].Match)
		if err != nil {
			return nil, fmt.Errorf("rules[%d].match is no regular expression: %s", i, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		f.Rules[i].match = m
	}
	return &Script{file: f, failed: map[string]int{}}, nil
}

// WithInfo returns the script with what is known of its model, such as a price, or a window beyond
// which the conversation is compacted. It may take the files that a script takes, whatever info says.
// Call it before the script is used.
func (s *Script) WithInfo(info model.Info) *Script {
	s.info = info
	return s
}

// Info implements [model.Model].
func (s *Script) Info(string) model.Info {
	if !s.info.IsZero() {
		info := s.info
		info.Files, info.ResultFiles = scriptFiles, scriptResultFiles
		return info
	}
	usd := func(v float64) agent.USD { return agent.USD(v * float64(agent.Dollar)) }
	return model.Info{Price: agent.Price{Input: usd(s.file.Price.Input), Output: usd(s.file.Price.Output)}, Window: s.file.Window, Files: scriptFiles, ResultFiles: scriptResultFiles}
}

// maxRequests is how many requests [Script.Requests] remembers.
const maxRequests = 100

// Requests returns the last hundred requests to the model.
func (s *Script) Requests() []model.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]model.Request(nil), s.requests...)
}

// Generate implements [model.Model].
func (s *Script) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Reply, error) {
	place, turn := placeOf(req)
	r, failure, err := s.take(req, place, turn)
	if err != nil {
		return nil, err
	}
	// Before the failure: a slow provider may fail, too.
	if err := sleep(ctx, r.Delay); err != nil {
		return nil, err
	}
	if failure != nil {
		return nil, model.Fault(failure.Kind, failure.HTTP, failure.RetryAfter, failure.Message)
	}
	return r.play(ctx, req, turn, emit)
}

// take chooses the reply, or the failure before it.
func (s *Script) take(req *model.Request, place string, turn int) (Reply, *Failure, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// Recorded before anything can fail, so tests see every request.
	s.requests = append(s.requests, *req)
	if len(s.requests) > maxRequests {
		s.requests = s.requests[len(s.requests)-maxRequests:]
	}
	r, ok := s.choose(req, turn)
	if !ok && asksForSummary(req) {
		return Reply{Text: fmt.Sprintf(summary, turn)}, nil, nil
	}
	if !ok {
		return r, nil, model.Fault(agent.FaultBadRequest, 0, 0, fmt.Sprintf("the script has %d replies and %d rules, but none for turn %d, which starts with %q", len(s.file.Replies), len(s.file.Rules), turn+1, short(lastText(req.Messages))))
	}
	if n := s.failed[place]; n < len(r.Fail) {
		s.failed[place]++
		return r, &r.Fail[n], nil
	}
	return r, nil, nil
}

func (s *Script) choose(req *model.Request, turn int) (Reply, bool) {
	// A retried call lacks the note, so the message before it must choose the same reply.
	said := withoutRecited(req.Messages)
	for _, last := range []string{lastText(said), lastText(withoutNotes(said))} {
		for _, r := range s.file.Rules {
			if r.match.MatchString(last) {
				return r, true
			}
		}
	}
	if turn < len(s.file.Replies) && !asksForSummary(req) {
		return s.file.Replies[turn], true
	}
	return Reply{}, false
}

// play emits the reply piece by piece, and returns it.
func (r Reply) play(ctx context.Context, req *model.Request, turn int, emit func(model.Delta)) (*model.Reply, error) {
	out := &model.Reply{Finish: model.Finish(r.Finish)}
	if r.Thinking != "" {
		emit(model.Delta{Thinking: r.Thinking})
		out.Parts = append(out.Parts, agent.Part{Type: agent.PartThinking, Text: r.Thinking})
	}
	text := r.Text + randomText(r.TextBytes, uint64(turn))
	for _, word := range strings.SplitAfter(text, " ") {
		if word == "" {
			continue
		}
		if err := sleep(ctx, r.Stream); err != nil {
			return nil, err
		}
		emit(model.Delta{Text: word})
	}
	if text != "" {
		out.Parts = append(out.Parts, agent.Part{Type: agent.PartText, Text: text, Citations: r.Citations})
	}
	for _, c := range r.Calls {
		out.Parts = append(out.Parts, c.part())
	}
	if out.Finish == "" && len(r.Calls) > 0 {
		out.Finish = model.FinishToolCalls
	} else if out.Finish == "" {
		out.Finish = model.FinishStop
	}
	out.Usage = r.usage(req, text)
	// A context that ended in the last moment must not look like a success.
	return out, ctx.Err()
}

func (c Call) part() agent.Part {
	raw := c.Raw
	if raw == "" {
		b, err := json.Marshal(c.Arguments)
		if err == nil && c.Arguments != nil {
			raw = string(b)
		}
	}
	return model.CallPart(c.ID, c.Tool, raw)
}

func (r Reply) usage(req *model.Request, text string) agent.Usage {
	if r.Usage != (Usage{}) {
		return agent.Usage{Input: r.Usage.Input, Output: r.Usage.Output, CacheRead: r.Usage.CacheRead}
	}
	in := len(req.Instructions)
	for _, m := range req.Messages {
		in += m.Size()
	}
	const bytesPerToken = 4
	// At least one token: no usage at all would mean that the provider does not report
	// it.
	return agent.Usage{Input: int64(max(1, in/bytesPerToken)), Output: int64(len(text)/bytesPerToken + len(r.Calls)*10)}
}

// lastText returns the text of the last message.
func lastText(messages []agent.Message) string {
	if len(messages) == 0 {
		return ""
	}
	m := messages[len(messages)-1]
	var text strings.Builder
	for _, p := range m.Parts {
		if p.Result != nil {
			text.WriteString(p.Result.Text)
		}
	}
	text.WriteString(m.Text()) // what follows results names their files
	return text.String()
}

// short returns the beginning of a text.
func short(text string) string {
	const most = 200
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// randomText returns text that does not compress, always the same for a seed.
func randomText(n int, seed uint64) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"
	if n == 0 {
		return ""
	}
	r := rand.New(rand.NewPCG(seed, 0))
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[r.IntN(len(letters))]
	}
	return string(b)
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
