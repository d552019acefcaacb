package window

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// TokenEstimator estimates a request's tokens from its length. It takes the tokens per
// byte from what the model counted in the last turn, and never less than most texts have.
type TokenEstimator struct {
	perByte float64
	fixed   int // bytes of instructions and tools
}

// Tokens per byte: the default, and the limits of what is believed.
const (
	usualTokensPerByte = 1.0 / 3
	minTokensPerByte   = 1.0 / 4
	maxTokensPerByte   = 1.0
)

// NewTokenEstimator returns the estimator for a log's last run, with its Spec.
func NewTokenEstimator(v *store.View, spec *agent.Spec) TokenEstimator {
	m := TokenEstimator{perByte: usualTokensPerByte, fixed: len(spec.Instructions) + len(spec.Output)}
	for _, t := range spec.Toolset {
		m.fixed += frame + len(t.Name) + len(t.Description) + len(t.Input)
	}
	if counted, at := lastTurn(v.Events()); counted > 0 {
		// A short request says little: the fixed parts that providers add would distort
		// the ratio.
		if bytes := m.fixed + Bytes(v.UpTo(at).Entries()); bytes > 1<<12 {
			m.perByte = min(max(float64(counted)/float64(bytes), minTokensPerByte), maxTokensPerByte)
		}
	}
	return m
}

// Estimate returns the bytes and about the tokens of a request that no reply has counted yet.
func Estimate(spec *agent.Spec, messages []agent.Message) (bytes int, tokens int64) {
	m := NewTokenEstimator(&store.View{}, spec)
	bytes = m.requestBytes(messages)
	return bytes, m.of(bytes)
}

// lastTurn returns how many tokens the model counted in the request of the last answered
// turn, and the last event of that request.
func lastTurn(events []agent.Event) (counted, at int64) {
	var end, begin agent.Event
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		switch {
		case e.Started != nil && e.Started.HasFirstTurn():
			i = 0
		case e.Type == agent.EventCompacted && begin.Seq == 0:
			end = agent.Event{} // the turn sent more than one request
		case e.Snapshot != nil && end.Seq == 0:
			end = e
		case e.Snapshot != nil && begin.Seq > 0:
			i = 0
		case e.Type == agent.EventTurnStarted && end.Seq > 0 && begin.Seq == 0:
			begin = e
		}
	}
	if begin.Seq == 0 {
		return 0, 0
	}
	return end.Snapshot.Request, begin.Seq
}

// Tokens estimates a request with the messages, including instructions and tools.
func (m TokenEstimator) Tokens(entries []store.Entry) int64 { return m.of(m.fixed + Bytes(entries)) }

// RequestTokens is [TokenEstimator.Tokens] for messages without their entries.
func (m TokenEstimator) RequestTokens(messages []agent.Message) int64 {
	return m.of(m.requestBytes(messages))
}

func (m TokenEstimator) requestBytes(messages []agent.Message) int {
	bytes := m.fixed
	for _, one := range messages {
		bytes += frame*(1+len(one.Parts)) + sent(one)
	}
	return bytes
}

// PartTokens estimates the messages alone.
func (m TokenEstimator) PartTokens(entries []store.Entry) int64 { return m.of(Bytes(entries)) }

func (m TokenEstimator) of(bytes int) int64 { return int64(float64(bytes) * m.perByte) }

// BytesFor returns how many bytes of messages a request of so many tokens may have.
func (m TokenEstimator) BytesFor(tokens int64) int {
	return max(0, int(float64(tokens)/m.perByte)-m.fixed)
}

// TextBytesFor returns how many bytes a text of so many tokens has, whatever else is in its request.
func (m TokenEstimator) TextBytesFor(tokens int64) int {
	return max(0, int(float64(tokens)/m.perByte))
}

// frame is about what a provider's format adds to each message and part, in bytes.
const frame = 64

// Bytes returns about the length of messages as they are sent to a provider.
func Bytes(entries []store.Entry) (n int) {
	for _, e := range entries {
		n += frame*(1+len(e.Parts)) + sent(e.Message)
	}
	return n
}

// sent returns the length of what a provider gets of a message: all but its citations.
func sent(m agent.Message) int {
	n := m.Size()
	for _, p := range m.Parts {
		n -= agent.CitationsSize(p.Citations)
	}
	return n
}

// Limit returns how many tokens a request may have so that the reply fits too; 0 if the
// window is unknown.
func Limit(spec *agent.Spec) int64 {
	if spec.Window <= 0 {
		return 0
	}
	reply := spec.MaxOutputTokens
	if reply == 0 {
		reply = spec.MaxOutput
	}
	if reply == 0 {
		reply = spec.Window / 10
	}
	return int64(spec.Window - min(reply, spec.Window/2))
}
