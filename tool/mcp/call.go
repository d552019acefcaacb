package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/tool"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// KeyMeta is the field of a call's _meta that holds the idempotency key.
const KeyMeta = "com.github.fermata-agents/idempotency-key"

// Call calls a tool by its full name. What the server reports as an error is a
// failure; a tool or arguments that it does not take are a refusal.
func (s *Server) Call(ctx context.Context, c *tool.Call) (string, error) {
	if !strings.HasPrefix(c.Tool, s.name+tool.Separator) {
		return "", agent.Errorf(agent.UnknownTool, "tool %q is none of the MCP server %s", c.Tool, s.name)
	}
	arguments := bytes.TrimSpace(c.Arguments)
	if len(arguments) == 0 {
		arguments = []byte("{}")
	}
	if arguments[0] != '{' || !json.Valid(arguments) {
		return "", tool.Refuse("the arguments are not a JSON object")
	}
	if s.opts.CallTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.opts.CallTimeout, errCallTime)
		defer cancel()
	}
	l, err := s.connected(ctx)
	if err != nil {
		return "", err
	}
	name, err := s.own(ctx, l, c.Tool)
	if err != nil {
		return "", err
	}
	params := &sdk.CallToolParams{Meta: sdk.Meta{}, Name: name, Arguments: json.RawMessage(arguments)}
	if c.Key != "" {
		params.Meta[KeyMeta] = c.Key
	}
	token, stop := l.listen(func(text string) { c.Progress("%s", text) })
	defer stop()
	params.SetProgressToken(token)
	result, err := l.call(ctx, params)
	switch {
	case err == nil:
		return answer(result)
	case errors.Is(context.Cause(ctx), errCallTime):
		return "", fmt.Errorf("the MCP server %s did not answer within %s; the call was cancelled, and may or may not have had its effect", s.name, s.opts.CallTimeout)
	case ctx.Err() != nil:
		return "", fmt.Errorf("the call of the MCP server %s was cancelled: %w", s.name, context.Cause(ctx))
	}
	return "", s.trouble(l, err, "during the call")
}

var errCallTime = errors.New("the call's time is up")

// call makes a call and returns when its context ends, whatever the SDK waits
// for. The SDK then tells the server that the call is cancelled.
func (l *link) call(ctx context.Context, params *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	type outcome struct {
		result *sdk.CallToolResult
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := l.session.CallTool(ctx, params)
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// trouble says what went wrong with a server, as opposed to within one of its tools.
func (s *Server) trouble(l *link, err error, when string) error {
	var wire *jsonrpc.Error
	answered := errors.As(err, &wire) && !errors.Is(err, sdk.ErrConnectionClosed)
	switch {
	case answered && (wire.Code == jsonrpc.CodeInvalidParams || wire.Code == jsonrpc.CodeMethodNotFound):
		return tool.Refuse("the MCP server %s refused: %s", s.name, cut(clean(wire.Message), maxDescription))
	case answered:
		return fmt.Errorf("the MCP server %s failed %s: %s (code %d)", s.name, when, cut(clean(wire.Message), maxDescription), wire.Code)
	case l.conn.broken() == nil:
		return fmt.Errorf("the MCP server %s does not answer as it should: %w", s.name, err)
	case s.isClosed():
		return fmt.Errorf("the MCP server %s was closed %s", s.name, when)
	}
	return fmt.Errorf("the MCP server %s %s%s", s.name, l.process.fate(when), l.process.words())
}

// answer is a result as the model reads it.
func answer(r *sdk.CallToolResult) (string, error) {
	var texts, others []string
	for _, c := range r.Content {
		if text, ok := textOf(c); ok {
			texts = append(texts, text)
		} else {
			others = append(others, mention(c))
		}
	}
	if len(texts) == 0 && r.StructuredContent != nil {
		b, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return "", fmt.Errorf("the server's structured answer can't be written: %w", err)
		}
		texts = append(texts, string(b))
	}
	text := clean(strings.Join(append(texts, others...), "\n"))
	switch {
	case len(r.InputRequests) > 0:
		return "", errors.New("the tool asks for input from a person, which is not possible here")
	case r.IsError && text == "":
		return "", errors.New("the tool failed and did not say why")
	case r.IsError:
		return "", errors.New(text)
	case text == "":
		return "(no output)", nil
	}
	return text, nil
}

func textOf(c sdk.Content) (string, bool) {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text, true
	case *sdk.EmbeddedResource:
		if c.Resource != nil && c.Resource.Blob == nil {
			return c.Resource.Text, true
		}
	}
	return "", false
}

// mention says that there is something which is not shown.
func mention(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.ImageContent:
		return fmt.Sprintf("[an image, %s, %d bytes, which can't be shown]", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[a sound, %s, %d bytes, which can't be played]", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		text := fmt.Sprintf("[a link to %s %s", c.Name, c.URI)
		if c.MIMEType != "" {
			text += ", " + c.MIMEType
		}
		if c.Size != nil {
			text += fmt.Sprintf(", %d bytes", *c.Size)
		}
		return text + "]"
	case *sdk.EmbeddedResource:
		if c.Resource != nil {
			return fmt.Sprintf("[a resource %s, %s, %d bytes, which can't be shown]", c.Resource.URI, c.Resource.MIMEType, len(c.Resource.Blob))
		}
	}
	return "[something that can't be shown]"
}

// clean makes text fit for JSON everywhere: valid UTF-8 without NUL.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// cut bounds a text, and says so.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
