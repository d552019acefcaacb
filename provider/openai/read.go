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

// assembler puts a reply together from what one of the two forms sends.
type assembler interface {
	// take adds an event, and reports whether it was the last one. A problem may
	// stand in any event.
	take(data []byte) (last bool, p *problem, err error)
	// takeWhole adds an answer that came at once.
	takeWhole(data []byte) (*problem, error)
	// reply is nil as long as it is not whole.
	reply() *model.Reply
}

// read follows an answer to its end.
func (m *Model) read(ctx context.Context, res *http.Response, into assembler, emit func(model.Delta)) (*model.Reply, error) {
	body := model.WatchBody(res, emit)
	var p *problem
	var err error
	switch form, _, _ := mime.ParseMediaType(res.Header.Get("content-type")); form {
	case "text/html":
		return nil, m.endpoint.Faultf(agent.FaultBadRequest, res.StatusCode, 0,
			"%s answered with a web page%s", m.name, m.endpoint.WrongEndpoint(res, baseVersion))
	case "application/json":
		p, err = readWhole(body, into)
	default:
		p, err = follow(body, into)
	}
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
	return nil, m.endpoint.Truncated(res.StatusCode, body.Bytes(), nil)
}

// errStopped ends the reading of a stream whose last event has come.
var errStopped = errors.New("the reply is whole")

// follow takes events until the last one, or the end.
func follow(body io.Reader, into assembler) (p *problem, err error) {
	err = model.Events(body, func(data []byte) error {
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

// readWhole reads the answer of a server that does not stream.
func readWhole(body *model.Body, into assembler) (*problem, error) {
	data, err := body.Whole()
	if err != nil {
		return nil, err
	}
	return into.takeWhole(data)
}

// decode reads an event, or the problem that it is.
func decode(data []byte, event any) (*problem, error) {
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

// finish is why a model stopped, from what it did and what the server said:
// servers say "stop" of replies with calls, too.
func finish(said model.Finish, refused, calls bool) model.Finish {
	switch {
	case refused || said == model.FinishContentFilter:
		return model.FinishContentFilter
	case said == model.FinishLength:
		return model.FinishLength
	case calls:
		return model.FinishToolCalls
	}
	return model.FinishStop
}

// usage counts tokens. Some servers leave reasoning out of the output, but not
// out of the total.
func usage(input, cacheRead, cacheWrite, output, reasoning, total int64) agent.Usage {
	return model.ClampUsage(agent.Usage{Input: input, Output: max(output, total-input), CacheRead: cacheRead, CacheWrite: cacheWrite, Reasoning: reasoning})
}
