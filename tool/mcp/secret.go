package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/fermata-agents/fermata/agent"
)

// minSecret is the length below which a value stays in texts: without it the rest would
// be unreadable.
const minSecret = 6

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// Variables returns the names that a value of [Options.Headers] has as ${NAME}, in order.
func Variables(value string) (names []string) {
	for _, m := range variable.FindAllStringSubmatch(value, -1) {
		names = append(names, m[1])
	}
	return names
}

// reserved are headers that the transport sets itself.
var reserved = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Host", "Last-Event-Id", "Transfer-Encoding"}

var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

// expand fills in the headers' variables from Env.
func (o *Options) expand() (map[string]string, error) {
	headers := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
		key := http.CanonicalHeaderKey(name)
		value := o.fill(o.Headers[name])
		switch _, twice := headers[key]; {
		case !headerName.MatchString(name):
			return nil, agent.Errorf(agent.CodeInvalidInput, "%q is not the name of a header", name)
		case slices.Contains(reserved, key) || strings.HasPrefix(key, "Mcp-"):
			return nil, agent.Errorf(agent.CodeInvalidInput, "the header %s is the protocol's own", name)
		case twice:
			return nil, agent.Errorf(agent.CodeInvalidInput, "the header %s is there twice", name)
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return nil, agent.Errorf(agent.CodeInvalidInput, "the value of the header %s has a line break or another control character", name)
		}
		for _, v := range Variables(o.Headers[name]) {
			if o.Env[v] == "" {
				return nil, agent.Errorf(agent.CodeInvalidInput, "the header %s names the variable %s, which has no value", name, v)
			}
		}
		headers[key] = value
	}
	return headers, nil
}

// fill replaces a text's variables with the values of Env.
func (o *Options) fill(text string) string {
	return variable.ReplaceAllStringFunc(text, func(v string) string { return o.Env[v[2:len(v)-1]] })
}

// redactor removes secrets from texts: fixed ones, and tokens, which change.
type redactor struct {
	fixed map[string]string // names by values

	mu       sync.Mutex
	tokens   map[*login][]string
	replacer atomic.Pointer[strings.Replacer]
}

// Replace removes the secrets from a text.
func (c *redactor) Replace(text string) string { return c.replacer.Load().Replace(text) }

// hideTokens hides a login's tokens, and its earlier ones: an answer to a request that
// was sent with those may still come.
func (s *Server) hideTokens(l *login) {
	const most = 16 // access and refresh token, and the credentials, each twice
	now := append([]string{l.known.At.Secret}, l.proofs...)
	if t := l.known.Token; t != nil {
		now = append(now, t.AccessToken, t.RefreshToken)
	}
	if p := l.known.Pending; p != nil {
		now = append(now, p.Verifier, p.At.Secret)
	}
	c := &s.hidden
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens == nil {
		c.tokens = map[*login][]string{}
	}
	all := union(now, c.tokens[l])
	c.tokens[l] = all[:min(len(all), most)]
	c.rebuild()
}

// forget drops a login's tokens, which nothing uses any more.
func (c *redactor) forget(l *login) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.tokens, l)
}

// rebuild rebuilds the replacer. The caller holds the lock, or nobody else has the redactor
// yet.
func (c *redactor) rebuild() {
	names := maps.Clone(c.fixed)
	for _, tokens := range c.tokens {
		for _, t := range tokens {
			names[t] = "token"
		}
	}
	c.replacer.Store(hide(names))
}

// secretsOf maps the values of Env and of the headers to their names. In a header such as
// "Bearer abcdef", the part after the scheme is a secret, too.
func secretsOf(env, headers map[string]string) map[string]string {
	names := map[string]string{} // by value
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		names[headers[name]] = name
		if _, rest, ok := strings.Cut(headers[name], " "); ok {
			names[rest] = name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		names[env[name]] = name
	}
	return names
}

// hide returns a replacer that puts names where values stood.
func hide(names map[string]string) *strings.Replacer {
	var pairs []string
	// Longest first: one value may be a part of another.
	for _, value := range slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) }) {
		if len(value) >= minSecret {
			pairs = append(pairs, value, "["+names[value]+"]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// secrets removes secrets from a text of ours.
func (s *Server) secrets(text string) string { return s.hidden.Replace(text) }

// said prepares a server's text to be passed on. A remote server has no reason to repeat
// our credentials, so these are removed. A program that we started knows what it was
// given, and its results may well contain some of it.
func (s *Server) said(text string) string {
	if s.url != nil {
		text = s.secrets(text)
	}
	return clean(text)
}

// redactingHandler is a log handler that removes secrets.
type redactingHandler struct {
	slog.Handler
	hidden *redactor
}

// Handle implements [slog.Handler].
func (d redactingHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, d.hidden.Replace(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(d.attr(a))
		return true
	})
	return d.Handler.Handle(ctx, out)
}

// WithAttrs implements [slog.Handler].
func (d redactingHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	attrs = slices.Clone(attrs)
	for i, a := range attrs {
		attrs[i] = d.attr(a)
	}
	return redactingHandler{d.Handler.WithAttrs(attrs), d.hidden}
}

// WithGroup implements [slog.Handler].
func (d redactingHandler) WithGroup(name string) slog.Handler {
	return redactingHandler{d.Handler.WithGroup(name), d.hidden}
}

func (d redactingHandler) attr(a slog.Attr) slog.Attr {
	switch v := a.Value.Resolve(); v.Kind() {
	case slog.KindString, slog.KindAny:
		text := v.String()
		if hidden := d.hidden.Replace(text); hidden != text {
			return slog.String(a.Key, hidden)
		}
	case slog.KindGroup:
		group := slices.Clone(v.Group())
		for i, inner := range group {
			group[i] = d.attr(inner)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(group...)}
	}
	return a
}
