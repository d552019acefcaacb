package agentsfile

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/model"
)

// ModelState is the result of asking the server of a model under models.
type ModelState struct {
	Name, URL string
	// Listed is how many models the server lists. It is zero if it lists none or is not
	// asked: only servers with OpenAI's API are.
	Listed int
	// Missing means that the model is not in the server's list.
	Missing bool
	// Err says why nothing answered, or that the server refused the key
	// (agent.CodeProviderAuth).
	Err error
}

// maxList bounds how much of a list of models is read, in bytes.
const maxList = 4 << 20

// AskModels asks the servers of the models of agents and flows that have a base_url and
// belong to no cloud, all at once and each for 5 s at most. It calls no model. The states
// are sorted by name.
func (f *File) AskModels(ctx context.Context) []ModelState {
	var states []ModelState
	for _, def := range f.Definitions() {
		for _, name := range modelsOf(def) {
			if e := f.named[name]; e.BaseURL != "" && !slices.Contains(cloudy, e.Provider) {
				states = append(states, ModelState{Name: name, URL: e.BaseURL})
			}
		}
	}
	slices.SortFunc(states, func(a, b ModelState) int { return strings.Compare(a.Name, b.Name) })
	states = slices.CompactFunc(states, func(a, b ModelState) bool { return a.Name == b.Name })
	var all sync.WaitGroup
	for i := range states {
		all.Go(func() { states[i].ask(ctx, f.named[states[i].Name]) })
	}
	all.Wait()
	return states
}

func (s *ModelState) ask(ctx context.Context, e modelEntry) {
	// The URL is shown in findings, and may contain a password.
	s.URL = model.RedactedURL(e.BaseURL)
	ctx, cancel := context.WithTimeout(ctx, time.Duration(askTime))
	defer cancel()
	// Only OpenAI's API has a list of models at a fixed path.
	url := e.BaseURL
	if e.Provider == providerOpenAI {
		url = strings.TrimSuffix(url, "/") + "/models"
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		s.Err = agent.Errorf(agent.CodeInvalidInput, "models.%s: the base_url is not a URL", s.Name)
		return
	}
	// The key is sent only to its own server.
	if key := variable(e.KeyEnv); key != "" && e.Provider == providerOpenAI {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	client := model.HTTPClient(nil)
	if e.Provider == providerOpenAI {
		more, _ := e.extra() // errors were reported when the file was read
		client = model.Extra{Headers: more.Headers}.Client(nil)
	}
	res, err := client.Do(r)
	if err != nil {
		s.Err = s.silent(ctx, err)
		return
	}
	defer res.Body.Close()
	switch {
	case e.Provider != providerOpenAI: // the request had no key, so its status means nothing
	case res.StatusCode == http.StatusOK:
		s.count(io.LimitReader(res.Body, maxList), e.Model)
	case res.StatusCode == http.StatusUnauthorized:
		s.Err = s.unknown(e.KeyEnv)
	}
}

// unknown returns an error that the server refused the key, or needs one.
func (s *ModelState) unknown(env string) error {
	switch {
	case env == "":
		return agent.Errorf(agent.CodeProviderAuth, "%s: %s needs a key, and api_key_env of models.%s names none", s.Name, s.URL, s.Name)
	case !secret.IsSet(env):
		return agent.Errorf(agent.CodeProviderAuth, "%s: %s needs a key, and %s is not set", s.Name, s.URL, env)
	}
	return agent.Errorf(agent.CodeProviderAuth, "%s: %s refused the key in %s", s.Name, s.URL, env)
}

// silent returns an error that nothing answered. The client's own error repeats the URL.
func (s *ModelState) silent(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return agent.Errorf(agent.CodeProviderError, "%s: nothing answers at %s within %s", s.Name, s.URL, askTime)
	}
	// The outer error quotes the URL, which may contain a password.
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	return agent.Errorf(agent.CodeProviderError, "%s: nothing answers at %s: %w", s.Name, s.URL, err)
}

// count reads the list. It ignores what is not a list of models.
func (s *ModelState) count(body io.Reader, name string) {
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.NewDecoder(body).Decode(&list) != nil {
		return
	}
	s.Listed, s.Missing = len(list.Data), len(list.Data) > 0
	for _, m := range list.Data {
		if m.ID == name {
			s.Missing = false
		}
	}
}
