package callback

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/client"
)

// A webhook that comes twice within a minute counts once, and another one with the same body counts
// too, if the sender gives ids or if it comes much later.
func TestTheSameAndTheEqual(t *testing.T) {
	const path = "/callback/trip-42?topic=a"
	keyed := func(id string) func(*http.Request) { return with("Idempotency-Key", id) }
	f := parked(agent.Conditions{Event: event("a")})
	d := opened(t, f, bearer(t))
	counts := func(n int, change ...func(*http.Request)) string {
		t.Helper()
		a := d.post(path, `{"open":true}`, change...)
		require.Equal(t, http.StatusOK, a.status, a.text)
		require.Len(t, f.verbs(), n)
		return a.text
	}
	first := counts(1)
	require.Equal(t, first, counts(1), "the run works")
	f.parks("a", time.Minute)
	require.Equal(t, first, counts(1), "the run waits for the same again, since a minute")
	counts(2, keyed("evt-2"))
	f.parks("a", time.Minute)
	counts(2, keyed("evt-2"))
	counts(3, keyed("evt-3"))
	f.parks("a", repeatWithin+time.Minute)
	second := counts(4)
	require.NotEqual(t, first, second)
	counts(4)
	f.parks("a", time.Minute)
	counts(4)

	// Another body under a known id is refused, as of every verb.
	a := d.post(path, `{"open":false}`, keyed("evt-2"))
	require.Equal(t, []any{400, "id"}, []any{a.status, a.Path}, a.text)
	// Ids that are longer than a verb's stay different.
	long := strings.Repeat("x", 100)
	counts(5, keyed(long))
	f.parks("a", time.Minute)
	counts(6, keyed(long+"y"))
}

// A held run keeps the event and waits: nothing that comes then is taken for another one.
func TestTheSameWhileHeld(t *testing.T) {
	f := parked(agent.Conditions{Event: event("a")})
	f.status.Suspension.Since = time.Now().Add(-time.Hour)
	f.status.Suspension.Holds = []agent.Hold{{ID: "h-1"}}
	d := opened(t, f, bearer(t))
	for range 3 {
		require.Equal(t, http.StatusOK, d.post("/callback/trip-42", "{}").status)
	}
	require.Len(t, f.verbs(), 1)
}

// One sender's ids and bodies are not those of another one, nor those of a person's verbs: nobody
// can use them up for somebody else.
func TestSendersShareNoIDs(t *testing.T) {
	shop, err := Bearer("shop", token)
	require.NoError(t, err)
	bank, err := Bearer("bank", token)
	require.NoError(t, err)
	f := parked(agent.Conditions{Event: event("a")})
	f.first["paid-118"] = "a resume of ana's"
	for _, change := range []func(*http.Request){with("Idempotency-Key", "paid-118"), with("X-Nothing", "")} {
		for _, prove := range []Authenticate{shop, bank} {
			f.parks("a", 0)
			n, d := len(f.verbs()), opened(t, f, prove)
			for range 2 {
				a := d.post("/callback/trip-42?topic=a", "{}", change)
				require.Equal(t, http.StatusOK, a.status, a.text)
				require.Len(t, f.verbs(), n+1)
			}
		}
	}
}

// A daemon loses no event behind an equal one: it needs ids. Without them the sender learns so, and
// nothing has an effect. A daemon of every topic is never guessed to wait for one.
func TestADaemonNeedsIDs(t *testing.T) {
	const path, body = "/callback/trip-42?topic=alarm", `{"alarm":true}`
	for _, topic := range []string{agent.EveryTopic, "alarm"} {
		f := parked(agent.Conditions{Event: event(topic)})
		f.status.QueuedEvents = &agent.Used[int]{Max: 256}
		d := opened(t, f, bearer(t))
		for n, since := range []time.Duration{0, 9 * time.Minute, 24 * time.Hour} {
			f.parks(topic, since)
			for _, one := range []string{path, "/callback/trip-42"} {
				a := d.post(one, body)
				require.Equal(t, []any{400, agent.CodeInvalidInput, "id", false}, []any{a.status, a.Code, a.Path, a.Retryable}, a.text)
				require.Contains(t, a.Detail, "webhook-id or an Idempotency-Key")
			}
			require.Len(t, f.verbs(), n)
			for range 2 {
				a := d.post(path, body, with("Idempotency-Key", fmt.Sprint("evt-", n)))
				require.Equal(t, http.StatusOK, a.status, a.text)
				require.Len(t, f.verbs(), n+1)
			}
		}
		f.parks(topic, 0)
		a := d.post("/callback/trip-42", body, with("Idempotency-Key", "evt-9"))
		if topic == agent.EveryTopic {
			require.Equal(t, []any{409, agent.CodeStale}, []any{a.status, a.Code}, a.text)
			require.Contains(t, a.Detail, "add topic=TOPIC")
		} else {
			require.Equal(t, http.StatusOK, a.status, a.text)
		}
		// A request is answered once, so it needs none.
		f.status.Suspension = &agent.Suspension{ID: "s-1", Requests: []agent.Request{{ID: "q-1", Run: "r-1", Type: agent.RequestClientTool}}}
		a = d.post("/callback/trip-42?request=q-1", body)
		require.Equal(t, http.StatusOK, a.status, a.text)
	}
}

// A repeated webhook whose address has no topic is never the result of a client tool, nor another
// event, for which the run waits by then. An id, a topic or a request makes it one.
func TestARepetitionIsNothingElse(t *testing.T) {
	const path, body = "/callback/trip-42", `{"order":118}`
	f := parked(agent.Conditions{Event: event("a")})
	d := opened(t, f, bearer(t))
	first := d.post(path, body)
	require.Equal(t, http.StatusOK, first.status, first.text)
	f.parks("a", time.Minute)
	require.Equal(t, first.text, d.post(path, body).text)
	waits := func(what string) {
		if f.parks(what, time.Hour); what == "tool" {
			f.status.Suspension = &agent.Suspension{ID: "s-2", Requests: []agent.Request{{ID: "q-1", Run: "r-1", Type: agent.RequestClientTool}}}
		}
	}
	for _, what := range []string{"tool", "b"} {
		waits(what)
		for range 2 {
			a := d.post(path, body)
			require.Equal(t, []any{400, agent.CodeInvalidInput, "id", false}, []any{a.status, a.Code, a.Path, a.Retryable}, a.text)
			require.Contains(t, a.Detail, "Idempotency-Key")
		}
		require.Len(t, f.verbs(), 1)
	}
	n := 1
	for what, query := range map[string]string{"tool": "?request=q-1", "b": "?topic=b"} {
		for _, change := range []func(*http.Request){with("Idempotency-Key", "evt-"+what), with("X-Nothing", "")} {
			waits(what)
			a := d.post(path+query, body, change)
			require.Equal(t, http.StatusOK, a.status, a.text)
			n++
			require.Len(t, f.verbs(), n)
		}
	}
}

// An address that names an earlier run reaches no later one, not even with the result of a client
// tool.
func TestALaterRun(t *testing.T) {
	f := parked(agent.Conditions{})
	f.status.Run = "r-2"
	d := opened(t, f, bearer(t))
	for _, rests := range []agent.Suspension{
		{ID: "s-1", Requests: []agent.Request{{ID: "q-1", Run: "r-2", Type: agent.RequestClientTool}}},
		{ID: "s-1", Conditions: &agent.Conditions{Event: event("a")}},
	} {
		f.status.Suspension = &rests
		for _, query := range []string{"?run=r-1", "?run=r-1&request=q-1"} {
			a := d.post("/callback/trip-42"+query, `{"paid":true}`)
			require.Equal(t, []any{409, agent.CodeStale, "run", "r-2"}, []any{a.status, a.Code, a.Path, a.Run}, a.text)
		}
		require.Empty(t, f.verbs())
	}
	f.status.Suspension.Requests = []agent.Request{{ID: "q-1", Run: "r-2", Type: agent.RequestClientTool}}
	a := d.post("/callback/trip-42?run=r-2&request=q-1", `{"paid":true}`)
	require.Equal(t, http.StatusOK, a.status, a.text)
}

// A sender that is quicker than the run is asked to come again.
func TestTooEarly(t *testing.T) {
	f := parked(agent.Conditions{})
	f.status.Status, f.status.Suspension = agent.StatusRunning, nil
	early := agent.Errorf(agent.CodeStale, "the run does not wait for topic a").WithPath("topic")
	early.Status = agent.StatusRunning
	f.refuse = early
	d := opened(t, f, bearer(t))
	for _, path := range []string{"/callback/trip-42", "/callback/trip-42?topic=a"} {
		a := d.post(path, "{}")
		require.Equal(t, []any{409, true, "10"}, []any{a.status, a.Retryable, a.header.Get("Retry-After")}, a.text)
	}
}

// Whatever comes, the handler answers with a status that it has, and nobody passes without the
// token.
func FuzzRequest(f *testing.F) {
	f.Add("POST", "/callback/trip-42?topic=a", "example.com", "application/json", "Bearer "+token, "evt-1", `{"a":1}`)
	f.Add("POST", "/callback/trip-42%2Fpay-1", "example.com", "application/json", "Bearer x", "", "[[[")
	f.Add("GET", "/callback/%00", "evil.example", "text/plain", "", `"`, "")
	f.Add("POST", "/callback/a?topic=%zz&&;", "example.com", "application/json;;", "Bearer "+token, " ", "null")
	known := map[int]bool{200: true, 400: true, 403: true, 404: true, 405: true, 409: true, 413: true, 415: true, 421: true}
	f.Fuzz(func(t *testing.T, method, target, host, kind, proof, id, body string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "http://example.com", strings.NewReader(body))
		if err != nil {
			return
		}
		if r.URL, err = r.URL.Parse(target); err != nil {
			return
		}
		r.Host = host
		for name, value := range map[string]string{"Content-Type": kind, "Authorization": proof, "Idempotency-Key": id} {
			r.Header.Set(name, value)
		}
		server := parked(agent.Conditions{Event: event("a")})
		h, err := New(client.New(server, nil), &Options{Authenticate: bearer(t), Hosts: []string{"example.com"}})
		require.NoError(t, err)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.True(t, known[w.Code], "%d %s", w.Code, w.Body)
		if proof != "Bearer "+token {
			require.Zero(t, server.asked)
		}
		if w.Code != http.StatusOK {
			require.Empty(t, server.verbs())
		}
	})
}
