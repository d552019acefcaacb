package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// assembler assembles a reply from the events of one of the two APIs.
type assembler interface {
	// take adds an event, and reports whether it was the last one. Any event may contain
	// a problem.
	take(data []byte) (last bool, p *problem, err error)
	// takeWhole adds an answer that was not streamed.
	takeWhole(data []byte) (*problem, error)
	// reply returns the reply; nil if it is incomplete.
	reply() *model.Reply
}

// read reads an answer to its end.
func (m *Model) read(ctx context.Context, res *http.Response, into assembler, emit func(model.Delta)) (*model.Reply, error) {
	body := model.WatchBody(res, emit)
	var p *problem
	var err error
	switch form, _, _ := mime.ParseMediaType(res.Header.Get("content-type")); form {
	// Gateways and login pages answer with HTML.
	case "text/html":
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, res.StatusCode, 0,
			"%s answered with a web page%s", m.name, m.endpoint.WrongEndpoint(res, baseVersion))
	case "application/json":
		p, err = readWhole(body, into)
	default:
		p, err = follow(body, into)
	}
	// First: a cancelled call also looks like a broken stream.
	switch {
	case ctx.Err() != nil:
		return nil, m.endpoint.Cancelled(ctx.Err())
	case p != nil:
		return nil, m.brokeOff(res.StatusCode, p)
	case err != nil:
		return nil, m.endpoint.Truncated(res.StatusCode, body.Bytes(), err)
	}
	if reply := into.reply(); reply != nil {
		return reply, nil
	}
	// A stream without its last event was cut.
	return nil, m.endpoint.Truncated(res.StatusCode, body.Bytes(), nil)
}

// errStopped ends the reading of a stream after its last event.
var errStopped = errors.New("the reply is whole")

// follow reads events until the last one.
func follow(body io.Reader, into assembler) (p *problem, err error) {
	err = model.Events(body, func(data []byte) error {
		// The mark ends a stream of Chat Completions; it is no event.
		if bytes.Equal(data, []byte("[DONE]")) {
			return errStopped
		}
		var last bool
		var err error
		if last, p, err = into.take(data); err == nil && (last || p != nil) {
			return errStopped
		}
		return err
	})
	if errors.Is(err, errStopped) {
		err = nil
	}
	return p, err
}

// readWhole reads an answer that was not streamed.
func readWhole(body *model.Body, into assembler) (*problem, error) {
	data, err := body.Whole()
	if err != nil {
		return nil, err
	}
	return into.takeWhole(data)
}

// decode decodes an event, or returns the problem in it.
func decode(data []byte, event any) (*problem, error) {
	// A search in the bytes first: most events have no problem, and decoding twice is slow.
	if bytes.Contains(data, []byte(`"error"`)) {
		if p := problemOf(data, false); p != nil {
			return p, nil
		}
	}
	if err := json.Unmarshal(data, event); err != nil {
		return nil, fmt.Errorf("an event is not JSON: %w", err)
	}
	return nil, nil
}

// finish returns why a model stopped, from what it did and what the server said: some
// servers say "stop" for replies with calls.
func finish(said model.Finish, refused, calls bool) model.Finish {
	switch {
	// A refusal counts even if calls came with it.
	case refused || said == model.FinishContentFilter:
		return model.FinishContentFilter
	case said == model.FinishLength:
		return model.FinishLength
	case calls:
		return model.FinishToolCalls
	}
	return model.FinishStop
}

// usage returns the counts of tokens. Some servers leave reasoning out of the output, but
// not out of the total.
func usage(input, cacheRead, cacheWrite, output, reasoning, total int64) agent.Usage {
	return model.ClampUsage(agent.Usage{Input: input, Output: max(output, total-input), CacheRead: cacheRead, CacheWrite: cacheWrite, Reasoning: reasoning})
}
