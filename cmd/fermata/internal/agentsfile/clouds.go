package agentsfile

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/azure"
	"github.com/fermata-agents/fermata/provider/bedrock"
	"github.com/fermata-agents/fermata/provider/vertex"
)

// The clouds whose models are always there. A worker signs in to them: there need be no
// key in a variable.
const (
	providerAzure   = "azure"
	providerBedrock = "bedrock"
	providerVertex  = "vertex"
)

// cloudFields are what a model under models may say of its cloud, besides base_url.
var cloudFields = map[string][]string{
	providerAzure: {"api", "api_version", "api_key_env"}, providerBedrock: {"region", "api_key_env"}, providerVertex: {"region", "project"},
}

// cloud is what all models of a cloud are to us.
type cloud interface {
	model.Model
	// Check reports why nobody could be asked. It asks no model.
	Check(ctx context.Context) error
}

// known reports whether a provider is one of ours.
func known(provider string) bool { return keys[provider] != nil || cloudFields[provider] != nil }

// clouds are the models of clouds that the environment alone describes.
func clouds() map[string]model.Model {
	return map[string]model.Model{providerAzure: azure.New(nil), providerBedrock: bedrock.New(nil), providerVertex: vertex.New(nil)}
}

// openCloud makes the models of an entry's cloud.
func (e modelEntry) openCloud(name string) cloud {
	key := os.Getenv(e.KeyEnv)
	if key == "" && e.KeyEnv != "" {
		key = noKey
	}
	switch provider := agent.Provider(name); e.Provider {
	case providerAzure:
		return azure.New(&azure.Options{Endpoint: e.BaseURL, APIVersion: e.APIVersion, APIKey: key, Name: provider, API: e.API})
	case providerBedrock:
		return bedrock.New(&bedrock.Options{Region: e.Region, APIKey: key, BaseURL: e.BaseURL, Name: provider})
	case providerVertex:
		return vertex.New(&vertex.Options{Project: e.Project, Location: e.Region, BaseURL: e.BaseURL, Name: provider})
	}
	return nil
}

// foreign is a field that an entry has and its provider knows nothing of; empty if there
// is none. What all the other providers have is checked by readModels.
func (e modelEntry) foreign() string {
	has := map[string]bool{"region": e.Region != "", "project": e.Project != "", "api_version": e.APIVersion != ""}
	if cloudFields[e.Provider] != nil {
		has["api"], has["keep_thinking"], has["api_key_env"] = e.API != "", e.KeepThinking, e.KeyEnv != ""
	}
	for _, field := range slices.Sorted(maps.Keys(has)) {
		if has[field] && !slices.Contains(cloudFields[e.Provider], field) {
			return field
		}
	}
	return ""
}

// CloudState is what came of signing in to the cloud of a model.
type CloudState struct {
	Name string
	Err  error // why nobody could sign in
}

// signInTime is how long one sign-in may take.
const signInTime = 10 * time.Second

// AskClouds signs in to the clouds of the agents' models as a call would, all at the same
// time and each for 10 s at most. It asks no model. The states are in the order of names.
func (f *File) AskClouds(ctx context.Context) []CloudState {
	found := map[string]cloud{}
	for _, def := range f.Agents {
		for _, name := range def.Models() {
			if e, ok := f.named[name]; ok {
				if c := e.openCloud(name); c != nil {
					found[name] = c
				}
			} else if c, ok := f.models[agent.Provider(name)].(cloud); ok {
				found[agent.Provider(name)] = c
			}
		}
	}
	var states []CloudState
	for _, name := range slices.Sorted(maps.Keys(found)) {
		states = append(states, CloudState{Name: name})
	}
	ctx, cancel := context.WithTimeout(ctx, signInTime)
	defer cancel()
	var all sync.WaitGroup
	for i := range states {
		all.Go(func() {
			if states[i].Err = found[states[i].Name].Check(ctx); ctx.Err() != nil {
				states[i].Err = agent.Errorf(agent.ProviderError, "%s: nobody could sign in within %s", states[i].Name, signInTime)
			}
		})
	}
	all.Wait()
	return states
}

// providersNamed lists providers for a message: "a, b or c".
func providersNamed() string {
	names := slices.Sorted(maps.Keys(cloudFields))
	names = append(slices.Sorted(maps.Keys(keys)), names...)
	slices.Sort(names)
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
