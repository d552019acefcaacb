package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/rawjson"
	"github.com/fermata-agents/fermata/internal/schemacost"
	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Elicit says how a server may ask a person in the middle of a call, beyond what is
// always possible; see the package comment.
type Elicit string

const (
	// ElicitRounds shakes hands by the newest protocol first, in which a server asks
	// by answering a call with its questions. A program may end, or say nothing, when
	// it hears that; it is then spoken to as others are, and half of the time to start
	// is gone.
	ElicitRounds Elicit = "rounds"
	// ElicitReplay is as [ElicitRounds], and lets a server of older protocols ask too,
	// which asks and waits while it is at the call. A call can't wait for as long as
	// people do, so it is cancelled, and made again from its beginning with the
	// answers. Set it for a server that may have its calls made again, or asks before
	// it does anything. Its calls are made one after the other: those protocols do not
	// say which call a question belongs to.
	ElicitReplay Elicit = "replay"
)

// Actions of the protocol.
const (
	actAccept  = "accept"
	actDecline = "decline"
	actCancel  = "cancel"
)

// Bounds of what a person is asked, in bytes.
const (
	maxURL    = 2 << 10  // of a page that is to be opened
	maxForm   = 16 << 10 // of a form's schema
	maxFields = 3 << 10  // of what a question tells of a form's fields
)

// want is one thing that a server wants of a person: that they fill in a form or open
// a page.
type want struct {
	ID      string          `json:"id,omitempty"` // the server's, in its round
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema,omitempty"` // of a form; empty for one without fields
	URL     string          `json:"url,omitempty"`
	State   string          `json:"state,omitempty"` // of a sign-in at the URL
}

// wantOf reads what a server asks. Its errors are for the server and the model.
func (s *Server) wantOf(id string, p *sdk.ElicitParams) (want, error) {
	if p == nil {
		return want{}, errors.New("it asks without saying what")
	}
	w := want{ID: id, Message: strings.TrimSpace(s.said(p.Message))}
	switch {
	case p.URL != "" || p.Mode == "url":
		page, err := url.Parse(p.URL)
		if err != nil || page.Host == "" || page.Scheme != "https" && page.Scheme != "http" || len(p.URL) > maxURL || strings.ContainsFunc(p.URL, unicode.IsControl) {
			return want{}, errors.New("it asks to open a page that has no URL of https:// or http://, or a very long one")
		}
		if page.User != nil {
			return want{}, errors.New("it asks to open a page whose URL has a user in it, which people take for the host")
		}
		if foreign(page) {
			return want{}, errForeign
		}
		w.URL = s.said(page.String())
	case p.Mode != "" && p.Mode != "form":
		return want{}, fmt.Errorf("it asks in the mode %q, which is unknown", cut(clean(p.Mode), maxShown))
	default:
		var err error
		if w.Schema, err = s.formOf(p.RequestedSchema); err != nil {
			return want{}, fmt.Errorf("it asks by a form that can't be read: %w", err)
		}
	}
	if w.Message == "" {
		w.Message = "The MCP server " + s.name + " asks."
	}
	return w, nil
}

var errForeign = errors.New("it names a page whose host is not written in ASCII: people could take it for another; such a host begins with xn--")

// foreign reports whether a host has characters that look like others, or turn the
// direction of writing.
func foreign(page *url.URL) bool {
	return strings.ContainsFunc(page.Host, func(r rune) bool { return r > unicode.MaxASCII })
}

// form is what the protocol allows as one: named fields with plain values.
type form struct {
	Type       string           `json:"type"`
	Properties map[string]field `json:"properties"`
	Required   []string         `json:"required"`
}

type field struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	options
	Items options `json:"items"`
}

// options are the values that there are to choose from, in one of the forms that the
// protocol has had for them.
type options struct {
	Enum      []any    `json:"enum"`
	EnumNames []string `json:"enumNames"` // of Enum, one by one
	OneOf     []titled `json:"oneOf"`
	AnyOf     []titled `json:"anyOf"`
}

type titled struct {
	Const any    `json:"const"`
	Title string `json:"title"`
}

// list has each value with what it is called.
func (o options) list() []titled {
	list := slices.Concat(o.OneOf, o.AnyOf)
	for i, v := range o.Enum {
		t := titled{Const: v}
		if i < len(o.EnumNames) {
			t.Title = o.EnumNames[i]
		}
		list = append(list, t)
	}
	return list
}

// formOf is a form's schema; nil for one without fields.
func (s *Server) formOf(schema any) (json.RawMessage, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	raw = []byte(s.said(string(raw)))
	var f form
	switch err := json.Unmarshal(raw, &f); {
	case schema == nil:
		return nil, nil
	case err != nil:
		return nil, err
	case len(raw) > maxForm:
		return nil, fmt.Errorf("it has more than %d bytes", maxForm)
	case rawjson.Depth(raw) > agent.MaxJSONDepth:
		return nil, fmt.Errorf("it is nested more than %d levels deep", agent.MaxJSONDepth)
	case f.Type != "object":
		return nil, errors.New("it is not that of an object")
	case len(f.Properties) == 0:
		return nil, nil
	}
	for name, p := range f.Properties {
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "array"}, p.Type) {
			return nil, fmt.Errorf("its field %q is of the type %q", cut(name, maxShown), cut(p.Type, maxShown))
		}
	}
	_, err = resolve(raw)
	return raw, err
}

func resolve(raw json.RawMessage) (*jsonschema.Resolved, error) {
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, err
	}
	read, err := json.Marshal(schema) // as it was understood
	if err != nil {
		return nil, err
	}
	if why := schemacost.Cycle(read); why != "" {
		return nil, errors.New(why)
	}
	if why := schemacost.HeavyPatterns(read); why != "" {
		return nil, errors.New(why)
	}
	return schema.Resolve(nil)
}

// Choices of a question without fields.
var (
	consents = []string{actAccept, actDecline}
	visits   = []string{"done", actDecline}
)

func (w want) choices() []string {
	switch {
	case w.State != "": // the answer is an address
	case w.URL != "":
		return visits
	case w.Schema == nil:
		return consents
	}
	return nil
}

// question is what a person is asked; wrong is what was not right with the last answer.
func (w want) question(server, wrong string) agent.ToolQuestion {
	q := agent.ToolQuestion{Text: w.Message, Choices: w.choices(), Schema: w.Schema}
	q.Context = "The MCP server " + server + " asks this, and is told what is answered."
	switch {
	case w.State != "":
		q.Text += "\nOpen this page, if you trust it, and sign in: " + w.URL + "\nIts host is " + w.host() +
			"\nAnswer with the address that your browser shows then, as it is. That no page is there does not matter."
		q.Context = "The address has a code that is good for one use, and for this session alone."
	case w.URL != "":
		q.Text += "\nOpen this page, if you trust it, and answer when you are done: " + w.URL + "\nIts host is " + w.host()
	case w.Schema != nil:
		q.Context += " Answer with JSON:" + fields(w.Schema)
	}
	if wrong != "" {
		q.Context = "The last answer did not fit: " + cut(wrong, maxShown) + ". " + q.Context
	}
	return q
}

// host is whom the page is of; empty if there is none to open.
func (w want) host() string {
	page, err := url.Parse(w.URL)
	if err != nil {
		return w.URL
	}
	return page.Host
}

// page is what a page that is to be opened is known by: the query may be made for each call.
func (w want) page() string {
	where, _, _ := strings.Cut(w.URL, "?")
	sum := sha256.Sum256([]byte(w.Message + "\x00" + where))
	return hex.EncodeToString(sum[:8])
}

// fields tells people what a form has, in its order by name. What is left out is not
// filled in for them: the server does that by its defaults, if it does.
func fields(schema json.RawMessage) string {
	var f form
	if json.Unmarshal(schema, &f) != nil {
		return ""
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		p := f.Properties[name]
		fmt.Fprintf(&b, "\n- %s: %s", name, p.Type)
		if !slices.Contains(f.Required, name) {
			b.WriteString(", may be left out")
		}
		if len(p.Default) > 0 {
			fmt.Fprintf(&b, ", by default %s", p.Default)
		}
		b.WriteString(among(", one of ", p.list()) + among(", some of ", p.Items.list()))
		if about := strings.Trim(p.Title+". "+p.Description, ". "); about != "" {
			b.WriteString(" (" + about + ")")
		}
	}
	return cut(b.String(), maxFields)
}

// among says which values there are to choose from.
func among(words string, values []titled) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprint(&b, words, v.Const)
		if v.Title != "" {
			b.WriteString(" (" + v.Title + ")")
		}
		words = ", "
	}
	return b.String()
}

// answered is what the server is told. A person's answer that does not fit is wrong,
// and asked for again; nobody is there to be asked again whom a deadline answers for.
func (w want) answered(a agent.ToolAnswer) (result *sdk.ElicitResult, wrong string) {
	action, data := actAccept, map[string]any(nil)
	switch {
	case a.Declined && a.Expired:
		action = actCancel
	case a.Declined:
		action = actDecline
	case w.Schema != nil:
		data, wrong = w.filled(a)
	case w.State != "": // see signsIn
	default:
		action, wrong = w.chosen(a)
	}
	if wrong != "" && a.Expired {
		action, data, wrong = actCancel, nil, ""
	}
	return &sdk.ElicitResult{Action: action, Content: data}, wrong
}

// chosen is the action of who had choices, the first of which agrees.
func (w want) chosen(a agent.ToolAnswer) (action, wrong string) {
	text, choices := a.Text, w.choices()
	_ = json.Unmarshal(a.Data, &text) // a choice may come in quotes
	i := slices.Index(choices, strings.ToLower(strings.TrimSpace(text)))
	if a.Choice != nil {
		i = *a.Choice
	}
	switch i {
	case 0:
		return actAccept, ""
	case 1:
		return actDecline, ""
	}
	return "", "it is neither " + strings.Join(choices, " nor ")
}

// filled is a form that was filled in. Where it has one field, a text alone is the
// value of that.
func (w want) filled(a agent.ToolAnswer) (data map[string]any, wrong string) {
	raw := []byte(a.Data)
	if len(raw) == 0 {
		raw = []byte(a.Text)
	}
	if exactly(raw, &data) != nil || data == nil {
		if data = w.alone(raw); data == nil {
			return nil, "it is no JSON object with the fields of the form"
		}
	}
	schema, err := resolve(w.Schema)
	var plain map[string]any // the schema knows no numbers as they were written
	if err == nil {
		raw, _ = json.Marshal(data) // out of JSON
		err = json.Unmarshal(raw, &plain)
	}
	if err == nil {
		err = schema.Validate(plain)
	}
	if err != nil {
		return nil, err.Error()
	}
	return data, ""
}

// alone is the form of one field with a value; nil if it has more.
func (w want) alone(raw []byte) map[string]any {
	var f form
	if json.Unmarshal(w.Schema, &f) != nil || len(f.Properties) != 1 {
		return nil
	}
	for name, p := range f.Properties {
		var value any
		err := exactly(raw, &value)
		if _, quoted := value.(string); err != nil || p.Type == "string" && !quoted {
			value = string(raw)
		}
		return map[string]any{name: value}
	}
	return nil
}

// exactly reads JSON and leaves its numbers as they were written.
func exactly(raw []byte, v any) error {
	if !json.Valid(raw) {
		return errors.New("it is no JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(v)
}
