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

// scope is what tokens are asked for.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// fetchTime bounds one request for a token: all calls wait for the same one.
const fetchTime = 30 * time.Second

// account gives tokens of Google Cloud. The library keeps and renews them.
type account struct {
	name string

	mu      sync.Mutex
	project string
	tokens  oauth2.TokenSource // nil until they are found
}

// projectID is the project that pays; empty until it is known.
func (a *account) projectID() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.project
}

// token is a model.SignIn. The library waits without a context, so it does not do so in
// the call's own goroutine.
func (a *account) token(ctx context.Context) (string, error) {
	type answer struct {
		token *oauth2.Token
		err   error
	}
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
			message := strings.Join(strings.Fields(got.err.Error()), " ")
			return "", model.Fault(kindOf(got.err), 0, 0, a.name+": nobody could sign in to Google Cloud; check the worker's application default credentials: "+message)
		case a.projectID() == "":
			return "", model.Fault(agent.FaultBadRequest, 0, 0, a.name+": there is no project; set "+envProject+" in the worker's environment, or project for the model")
		}
		return got.token.AccessToken, nil
	}
}

// source finds the default credentials. What could not be found is looked for again by
// the next call.
func (a *account) source() (oauth2.TokenSource, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tokens != nil {
		return a.tokens, nil
	}
	// The source keeps this context for as long as it renews tokens.
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: fetchTime})
	found, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return nil, err
	}
	a.tokens = found.TokenSource
	if a.project == "" {
		a.project = found.ProjectID
	}
	return a.tokens, nil
}

// kindOf sorts a failure to sign in: a server of Google's that has a bad moment may have a
// better one later; everything else needs a person.
func kindOf(err error) agent.FaultKind {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil &&
		(refused.Response.StatusCode >= 500 || refused.Response.StatusCode == http.StatusTooManyRequests) {
		return agent.FaultTransient
	}
	return agent.FaultAuth
}
