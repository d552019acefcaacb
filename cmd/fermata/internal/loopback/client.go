package loopback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/await"
	"github.com/fermata-agents/fermata/live"
)

// again is the pause before a client looks again for a missing endpoint.
const again = 250 * time.Millisecond

// Client is both ends of live events in a process without the endpoint. If another
// endpoint replaces the first, the client changes to it. It is safe for use by many
// goroutines at once.
type Client struct {
	file string
	done context.Context
	end  context.CancelFunc
	wake chan struct{}
	sent chan struct{} // closed when send has returned

	mu      sync.Mutex
	waiting map[string]*live.Subscription // what is not sent yet, by session
	http    *http.Client                  // for the endpoint with this token
	token   string
}

// Find returns a client of the data directory's endpoint; nil if there is none for the
// Temporal server at this address.
func Find(dir, temporal string) *Client {
	c := &Client{file: filepath.Join(dir, FileName)}
	if p, err := read(c.file); err != nil || p.Temporal != temporal {
		return nil
	}
	// A context of its own: what is published last is still sent after the command's context ends.
	c.done, c.end = context.WithCancel(context.Background())
	c.wake, c.sent, c.waiting = make(chan struct{}, 1), make(chan struct{}), map[string]*live.Subscription{}
	go c.send()
	return c
}

// read reads where the endpoint is. It refuses an address that is not on loopback: the
// token and the texts would leave this machine.
func read(file string) (p place, err error) {
	raw, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		return p, err
	}
	host, _, err := net.SplitHostPort(p.Addr)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return p, agent.Errorf(agent.CodeInvalidInput, "%s names no address of loopback", file)
	}
	return p, nil
}

// Close ends the client after what was published is sent or can't be sent. Do not publish
// after it.
func (c *Client) Close() {
	c.end()
	<-c.sent
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// Publish implements [live.Sink]. It never waits. If too much of a session waits, the
// oldest events are dropped, and readers learn how many.
func (c *Client) Publish(e live.Event) {
	c.mu.Lock()
	s := c.waiting[e.Session]
	if s == nil {
		s = live.NewSubscription(nil)
		c.waiting[e.Session] = s
	}
	s.Put(e)
	c.mu.Unlock()
	// Never blocks: one signal covers all events that wait.
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Client) send() {
	defer close(c.sent)
	// After Close, one more round sends what was published before.
	for open := true; open; {
		select {
		case <-c.wake:
		case <-c.done.Done():
			open = false
		}
		c.mu.Lock()
		waiting := c.waiting
		// Swapped under the lock and sent outside of it, so publishers never wait for the network.
		c.waiting = map[string]*live.Subscription{}
		c.mu.Unlock()
		for _, s := range waiting {
			c.deliver(s.Take())
		}
	}
}

// deliver sends events once. Events that can't be sent count as lost and are not
// repeated: they may have arrived.
func (c *Client) deliver(list []live.Event) {
	// One try only: a repetition could show a text twice.
	if c.post(list) == nil || len(list) == 0 {
		return
	}
	lost := list[len(list)-1]
	// A drop counts the events that it stands for.
	lost.Type, lost.Data = agent.EventDeltaDropped, live.Data{}
	for _, e := range list {
		lost.Data.Dropped += max(1, e.Data.Dropped)
	}
	if !await.Pause(c.done, again) {
		return
	}
	_ = c.post([]live.Event{lost})
}

func (c *Client) post(list []live.Event) error {
	var body bytes.Buffer
	lines := json.NewEncoder(&body)
	for _, e := range list {
		if err := lines.Encode(e); err != nil {
			return err
		}
	}
	// Not the client's context: the last events are sent while the client closes.
	ctx, cancel := context.WithTimeout(context.Background(), blocked)
	defer cancel()
	_, answer, err := c.ask(ctx, http.MethodPost, "", &body)
	if err == nil {
		_ = answer.Close()
	}
	return err
}

// ask sends a request to the current endpoint, and returns its token.
func (c *Client) ask(ctx context.Context, method, query string, body io.Reader) (token string, answer io.ReadCloser, err error) {
	// Read each time: another process may have replaced the endpoint.
	p, err := read(c.file)
	if err != nil {
		return "", nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+p.Addr+path+query, body)
	if err != nil {
		return "", nil, err
	}
	r.Header.Set("Authorization", "Bearer "+p.Token)
	to, err := c.caller(p)
	if err != nil {
		return "", nil, err
	}
	w, err := to.Do(r)
	if err != nil {
		return "", nil, err
	}
	// The body is closed, or the connection would never be reused.
	if w.StatusCode/100 != 2 {
		return "", nil, errors.Join(agent.Errorf(agent.CodeUnreachable, "the endpoint of live events says %s", w.Status), w.Body.Close())
	}
	return p.Token, w.Body, nil
}

// caller returns the HTTP client for an endpoint, which is kept until another endpoint
// comes.
func (c *Client) caller(p place) (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// The token identifies the endpoint, since a port may be used again.
	if c.http != nil && c.token == p.Token {
		return c.http, nil
	}
	to, err := caller(p)
	if err != nil {
		return nil, err
	}
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
	c.http, c.token = to, p.Token
	return to, nil
}

// Subscribe implements [live.Source]. It delivers the open turn from its beginning, and
// what comes after. It does not wait for the endpoint.
func (c *Client) Subscribe(_ context.Context, session string) (*live.Subscription, error) {
	ctx, cancel := context.WithCancel(c.done)
	s := live.NewSubscription(cancel)
	go func() {
		f := following{client: c, session: session, to: s}
		for ctx.Err() == nil {
			f.listen(ctx)
			await.Pause(ctx, again)
		}
	}()
	return s, nil
}

// following is how far a client has read a session.
type following struct {
	client  *Client
	session string
	to      *live.Subscription
	token   string // of the endpoint that gave the numbers
	after   int64
}

// listen reads until the connection ends.
func (f *following) listen(ctx context.Context) {
	p, err := read(f.client.file)
	if err != nil {
		return
	}
	// Another endpoint numbers its events from the start.
	if p.Token != f.token {
		f.token, f.after = p.Token, 0
	}
	q := url.Values{"session": {f.session}, "after": {strconv.FormatInt(f.after, 10)}}
	token, answer, err := f.client.ask(ctx, http.MethodGet, "?"+q.Encode(), nil)
	if err != nil {
		return
	}
	defer answer.Close()
	if token != f.token {
		return // another endpoint came in between
	}
	for lines := json.NewDecoder(answer); ; {
		var n numbered
		if lines.Decode(&n) != nil {
			return
		}
		f.after = n.Seq
		f.to.Put(n.Event)
	}
}
