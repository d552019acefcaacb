package callback

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
)

// Address says whom a callback reaches, and with what. Session is required.
type Address struct {
	// Session is the session whose run waits. A sub-agent's session has its parent's before it.
	Session string
	// Run is the only run of the session that is meant; empty means whichever is live.
	Run string
	// Topic is the topic of the event that the body becomes. If it is empty and Request too, the
	// handler asks the run what it waits for: one topic, or the result of one client tool.
	Topic string
	// Request is a client tool's request, whose result the body becomes.
	Request string
}

// URL returns the callback's address below a base such as "https://hooks.example.com". With a topic
// or a request in it, a repeated callback is answered as the first was.
func (a Address) URL(base string) string {
	query := url.Values{}
	for name, value := range map[string]string{"run": a.Run, "topic": a.Topic, "request": a.Request} {
		if value != "" {
			query.Set(name, value)
		}
	}
	address := strings.TrimSuffix(base, "/") + Prefix + url.PathEscape(a.Session)
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return address
}

// childForm is how a part of a sub-agent's session, after a "/", looks.
var childForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}-[1-9][0-9]{0,8}$`)

const maxSession = 255 // bytes, as Temporal allows

// parse reads a request's address. A session that can't exist is refused as one that does not.
func parse(r *http.Request) (a Address, err error) {
	// A "/" of a sub-agent's session may come as %2F or, after a proxy, as itself.
	name, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), Prefix))
	if err != nil || len(name) > maxSession {
		return a, errUnknownSession
	}
	top, below, nested := strings.Cut(name, "/")
	if agent.CheckSession(top) != nil {
		return a, errUnknownSession
	}
	for nested {
		var part string
		if part, below, nested = strings.Cut(below, "/"); !childForm.MatchString(part) {
			return a, errUnknownSession
		}
	}
	a.Session = name
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return a, agent.Errorf(agent.CodeInvalidInput, "the URL's query can't be read")
	}
	fields := map[string]*string{"run": &a.Run, "topic": &a.Topic, "request": &a.Request}
	// In their order: the same URL gets the same error.
	for _, key := range slices.Sorted(maps.Keys(query)) {
		field, values := fields[key], query[key]
		wrong := ""
		switch {
		case field == nil:
			wrong = "is not known here"
		case len(values) > 1:
			wrong = fmt.Sprintf("is there %d times", len(values))
		case values[0] == "":
			wrong = "has no value"
		default:
			*field = values[0]
			continue
		}
		return a, agent.Errorf(agent.CodeInvalidInput, "%.40q in the URL's query %s; it takes run, topic and request, each once and with a value", key, wrong)
	}
	if a.Topic != "" && a.Request != "" {
		return a, agent.Errorf(agent.CodeInvalidInput, "a callback is either an event with a topic or the result for a request, not both").WithPath("request")
	}
	return a, nil
}

// idOf returns the id that the sender gives to a delivery and all its repetitions; empty if it gives
// none. A webhook-id goes first: a signature covers it, and nothing else covers Idempotency-Key.
func idOf(r *http.Request) string {
	id := strings.TrimSpace(r.Header.Get(headerID))
	if id == "" {
		// The header's draft standard puts the key in quotes; many senders do not.
		id = strings.TrimSpace(strings.Trim(strings.TrimSpace(r.Header.Get("Idempotency-Key")), `"`))
	}
	return id
}

// digest returns an id made of several texts. JSON keeps them apart.
func digest(parts ...string) string {
	raw, err := json.Marshal(parts)
	if err != nil { // strings can always be written
		panic(err)
	}
	sum := sha256.Sum256(raw)
	return "callback-" + hex.EncodeToString(sum[:20])
}
