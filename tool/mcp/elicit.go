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
// always possible; see the package comment. It is an option of a server
// ([Options.Elicit]).
type Elicit string

const (
	// ElicitRounds begins the handshake with the newest protocol, in which a server asks
	// by answering a call with its questions. A program that does not know it may end or
	// say nothing. It is then started again with the older handshake, and half of the
	// time to start is used up.
	ElicitRounds Elicit = "rounds"
	// ElicitReplay is [ElicitRounds], and also lets servers of older protocols ask, which
	// wait for the answer during the call. A call can't wait as long as people do. So it
	// is cancelled, and made again from its beginning with the answers. Set it for a
	// server whose calls may be repeated, or that asks before it does anything. Its calls
	// run one after the other: those protocols do not say which call a question belongs
	// to.
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
	maxURL    = 2 << 10  // of a page to open
	maxForm   = 16 << 10 // of a form's schema
	maxFields = 3 << 10  // of the fields that a question describes
)

// want is one thing that a server wants of a person: to fill in a form or to open a page.
type want struct {
	ID      string          `json:"id,omitempty"` // the server's, in its round
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema,omitempty"` // of a form; empty for one without fields
	URL     string          `json:"url,omitempty"`
	State   string          `json:"state,omitempty"` // of a sign-in at the URL
}

// wantOf reads what a server asks. Its errors are shown to the server and the model.
func (s *Server) wantOf(id string, p *sdk.ElicitParams) (want, error) {
	if p == nil {
		return want{}, errors.New("it asks without saying what")
	}
	w := want{ID: id, Message: strings.TrimSpace(s.said(p.Message))}
	switch {
	case p.URL != "" || p.Mode == "url":
		page, err := url.Parse(p.URL)
		// Control characters could hide the host from the person.
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

// foreign reports whether a host has characters that look like others, or change the
// direction of writing.
func foreign(page *url.URL) bool {
	return strings.ContainsFunc(page.Host, func(r rune) bool { return r > unicode.MaxASCII })
}

// form is a form as the protocol allows it: named fields with plain values.
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

// options are the values to choose from, in any of the forms that the protocol has used.
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

// list returns each value with its title.
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

// formOf returns a form's schema, or nil if it has no fields.
func (s *Server) formOf(schema any) (json.RawMessage, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	// Secrets are removed before the size is checked and before anybody sees it.
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
	// Checked as the library reads it, which takes some things for a $ref that are not
	// written so.
	read, err := json.Marshal(schema)
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

// question returns what a person is asked. wrong says what was wrong with the last
// answer.
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

// host returns the host of the page; empty if there is none to open.
func (w want) host() string {
	page, err := url.Parse(w.URL)
	if err != nil {
		return w.URL
	}
	return page.Host
}

// page identifies a page across calls. The query is left out: servers may make it for
// each call.
func (w want) page() string {
	where, _, _ := strings.Cut(w.URL, "?")
	sum := sha256.Sum256([]byte(w.Message + "\x00" + where))
	return hex.EncodeToString(sum[:8])
}

// fields describes a form's fields to people, sorted by name. Fields that a person leaves
// out are not filled in here; the server may use its defaults.
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

// among lists the values to choose from.
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

// answered returns the answer for the server. If a person's answer does not fit, wrong says
// why, and they are asked again. If a deadline gave the answer, nobody can be asked
// again.
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
	// A deadline gave this answer: there is nobody to ask again.
	if wrong != "" && a.Expired {
		action, data, wrong = actCancel, nil, ""
	}
	return &sdk.ElicitResult{Action: action, Content: data}, wrong
}

// chosen returns the action of a person who had choices. The first choice agrees.
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

// filled returns a filled-in form. If it has one field, a text alone is that field's
// value.
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

// alone returns the form with a value for its only field; nil if it has more fields.
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

// exactly decodes JSON and keeps its numbers as they were written.
func exactly(raw []byte, v any) error {
	if !json.Valid(raw) {
		return errors.New("it is no JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	return decoder.Decode(v)
}
