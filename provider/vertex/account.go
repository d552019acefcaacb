package vertex

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// scope is the scope of tokens.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// fetchTime limits one request for a token, because all calls wait for the same one.
const fetchTime = 30 * time.Second

// account returns tokens of Google Cloud. The library caches and renews them.
type account struct {
	name string

	mu      sync.Mutex
	project string
	tokens  oauth2.TokenSource // nil until they are found
}

// projectID returns the project that pays; empty until it is known.
func (a *account) projectID() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.project
}

// token is a model.SignIn. The library ignores contexts while it waits, so it runs in its
// own goroutine.
func (a *account) token(ctx context.Context) (string, error) {
	type answer struct {
		token *oauth2.Token
		err   error
	}
	// Room for one: after the context has ended nobody receives, and the goroutine must end.
	answered := make(chan answer, 1)
	go func() {
		var got answer
		var from oauth2.TokenSource
		if from, got.err = a.source(); got.err == nil {
			got.token, got.err = from.Token()
		}
		answered <- got
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case got := <-answered:
		switch {
		case got.err != nil:
			// The library's errors have many lines.
			message := strings.Join(strings.Fields(got.err.Error()), " ")
			return "", model.Fault(kindOf(got.err), 0, 0, a.name+": signing in to Google Cloud failed; check the worker's application default credentials: "+message)
		// Asked only now: the credentials may name a project.
		case a.projectID() == "":
			return "", model.Fault(agent.FaultBadRequest, 0, 0, a.name+": there is no project; set "+envProject+" in the worker's environment, or project for the model")
		}
		return got.token.AccessToken, nil
	}
}

// source returns the default credentials. If they were not found, the next call looks
// again.
func (a *account) source() (oauth2.TokenSource, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tokens != nil {
		return a.tokens, nil
	}
	// The source uses this context as long as it renews tokens, so it must not be the
	// call's.
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: fetchTime})
	found, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return nil, err
	}
	// Cached only after success, so a corrected file is found.
	a.tokens = found.TokenSource
	if a.project == "" {
		a.project = found.ProjectID
	}
	return a.tokens, nil
}

// kindOf returns the kind of a failure to sign in. A failing server of Google's may work
// again later; everything else needs a person.
func kindOf(err error) agent.FaultKind {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil &&
		(refused.Response.StatusCode >= 500 || refused.Response.StatusCode == http.StatusTooManyRequests) {
		return agent.FaultTransient
	}
	return agent.FaultAuth
}
