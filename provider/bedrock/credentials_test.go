package bedrock_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/standin"
	"github.com/fermata-agents/fermata/provider/bedrock"
)

func newModel(o *bedrock.Options) *bedrock.Model { return bedrock.New(o) }

// bare is an environment that AWS's chain finds nothing in.
func bare(t *testing.T) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
}

// metadata is a container's server of credentials, whose n-th answer lasts for so long.
func metadata(t *testing.T, lasts func(n int32) time.Duration, status func() int) *atomic.Int32 {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "container-token" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if code := status(); code != http.StatusOK {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, `{"code":"Internal","message":"no"}`)
			return
		}
		i := n.Add(1)
		_, _ = fmt.Fprintf(w, `{"AccessKeyId":"AKIDEXAMPLE","SecretAccessKey":%q,"Token":"%s-%d","Expiration":%q}`,
			secret, token, i, time.Now().UTC().Add(lasts(i)).Format(time.RFC3339))
	}))
	t.Cleanup(s.Close)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", s.URL)
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token")
	return &n
}

func fine() int { return http.StatusOK }

// Credentials come from the default chain, are kept while they last, and fetched anew
// when they expire. No call shows them.
func TestCredentialsAreRenewed(t *testing.T) {
	bare(t)
	fetched := metadata(t, func(n int32) time.Duration {
		if n == 1 {
			return -time.Minute // over as soon as it comes
		}
		return time.Hour
	}, fine)
	t.Setenv("AWS_REGION", region)
	s := standin.Listen(t, func(w http.ResponseWriter, r *http.Request) { streams(whole...)(w, r) })
	m := newModel(&bedrock.Options{BaseURL: s.URL})
	require.Zero(t, fetched.Load(), "New makes no request")
	for range 3 {
		standin.Reply(t, m, ask("Hello"))
	}
	require.Equal(t, int32(2), fetched.Load())
	var sent []string
	for i, h := range s.Heads {
		sent = append(sent, h.Get("X-Amz-Security-Token"))
		require.NotContains(t, string(s.Bodies[i]), token)
	}
	require.Equal(t, []string{token + "-1", token + "-2", token + "-2"}, sent)
	standin.Hides(t, secret, token, *m, m)
}

// Credentials that Bedrock refuses are fetched anew by the next call, and no fault shows
// them, even if Bedrock does.
func TestRefusedCredentialsAreFetchedAnew(t *testing.T) {
	bare(t)
	fetched := metadata(t, func(int32) time.Duration { return time.Hour }, fine)
	var refusing atomic.Bool
	refusing.Store(true)
	s := standin.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		if refusing.Load() {
			standin.Answer(403, "application/json", fmt.Sprintf(`{"message":"The security token %s included in the request is expired"}`, r.Header.Get("X-Amz-Security-Token")),
				"X-Amzn-Errortype", "ExpiredTokenException:http://internal.amazon.com/coral/com.amazon.coral.service/")(w, r)
			return
		}
		streams(whole...)(w, r)
	})
	m := newModel(&bedrock.Options{BaseURL: s.URL, Region: region})
	fault := s.Fails(t, m, ask("Hello"), token)
	require.Equal(t, agent.FaultAuth, fault.Provider.Kind)
	require.Contains(t, fault.Message, "The security token [secret] included in the request is expired; check the worker's AWS credentials")
	refusing.Store(false)
	standin.Reply(t, m, ask("Hello"))
	require.Equal(t, int32(2), fetched.Load())
}

// Without a region or credentials the call says what to set, and asks nobody. A server of
// credentials that has a bad moment is asked again by the next attempt.
func TestWithoutCredentials(t *testing.T) {
	bare(t)
	s := standin.Listen(t, streams(whole...))
	_, err := newModel(&bedrock.Options{BaseURL: s.URL}).Generate(t.Context(), ask("Hello"), silent)
	requireFault(t, err, agent.FaultBadRequest, "bedrock: there is no region; set AWS_REGION in the worker's environment")
	m := newModel(&bedrock.Options{BaseURL: s.URL, Region: region})
	_, err = m.Generate(t.Context(), ask("Hello"), silent)
	requireFault(t, err, agent.FaultAuth, "bedrock: there are no AWS credentials; check the worker's environment and role, or set AWS_BEARER_TOKEN_BEDROCK")
	requireFault(t, m.Check(t.Context()), agent.FaultAuth, "there are no AWS credentials")

	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	var down atomic.Bool
	down.Store(true)
	metadata(t, func(int32) time.Duration { return time.Hour }, func() int {
		if down.Load() {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	m = newModel(&bedrock.Options{BaseURL: s.URL, Region: region})
	_, err = m.Generate(t.Context(), ask("Hello"), silent)
	requireFault(t, err, agent.FaultTransient, "there are no AWS credentials")
	require.Zero(t, s.Requests())
	down.Store(false)
	require.NoError(t, m.Check(t.Context()))
	require.Zero(t, s.Requests(), "Check asks no model")
	standin.Reply(t, m, ask("Hello"))

	t.Setenv("AWS_PROFILE", "nobody")
	_, err = newModel(&bedrock.Options{BaseURL: s.URL}).Generate(t.Context(), ask("Hello"), silent)
	requireFault(t, err, agent.FaultAuth, "AWS's configuration can't be read")
}

func requireFault(t *testing.T, err error, kind agent.FaultKind, says string) {
	t.Helper()
	var fault *agent.Error
	require.ErrorAs(t, err, &fault)
	require.Equal(t, kind, fault.Provider.Kind, err)
	require.Contains(t, fault.Message, says)
}

// A Bedrock API key is sent as it is, and nothing else is fetched.
func TestAPIKey(t *testing.T) {
	bare(t)
	const key = "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t"
	t.Setenv("AWS_BEARER_TOKEN_BEDROCK", key)
	s := standin.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		streams(whole...)(w, r)
	})
	m := newModel(&bedrock.Options{BaseURL: s.URL})
	standin.Reply(t, m, ask("Hello"))
	require.Empty(t, s.Heads[0].Get("X-Amz-Date"))
	standin.Hides(t, key, key, *m, m, bedrock.Options{APIKey: key}, &bedrock.Options{APIKey: key})

	_, err := newModel(&bedrock.Options{APIKey: key}).Generate(t.Context(), ask("Hello"), silent)
	requireFault(t, err, agent.FaultBadRequest, "there is no region")
}

func TestReach(t *testing.T) {
	bare(t)
	standin.Unreachable(t, at, ask("Hello"), "AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
	standin.ClientTimeout(t, at, ask("Hello"), token)
	standin.Redirect(t, at, ask("Hello"), token)
	standin.WrongURLs(t, at, ask("Hello"))
}

// The end of a call's context is no fault, also while credentials are fetched.
func TestTheEndComesWhileCredentialsAreFetched(t *testing.T) {
	bare(t)
	asked, over := make(chan struct{}), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(asked)
		<-over
	}))
	t.Cleanup(func() {
		close(over)
		s.Close()
	})
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", s.URL)
	ctx, cancel := contextUntil(t, asked)
	defer cancel()
	_, err := newModel(&bedrock.Options{BaseURL: s.URL, Region: region}).Generate(ctx, ask("Hello"), silent)
	require.Error(t, err)
	var fault *agent.Error
	require.False(t, errors.As(err, &fault), err)
}
