package agentsfile

import (
	"context"
	"maps"
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

// The clouds whose models are always available. A worker signs in to them, so no variable
// needs a key.
const (
	providerAzure   = "azure"
	providerBedrock = "bedrock"
	providerVertex  = "vertex"
)

// cloudy are the clouds.
var cloudy = []string{providerAzure, providerBedrock, providerVertex}

// cloud is a model of a cloud.
type cloud interface {
	model.Model
	// Check returns why signing in fails. It calls no model.
	Check(ctx context.Context) error
}

// known reports whether a provider is one of ours.
func known(provider string) bool { return providerFields[provider] != nil }

// clouds returns the clouds' models that the environment alone describes.
func clouds() map[string]model.Model {
	return map[string]model.Model{
		// No cloud key is needed: without one the adapter signs in as the environment says.
		providerAzure:   azure.New(&azure.Options{APIKey: filed(cloudKeys[providerAzure])}),
		providerBedrock: bedrock.New(&bedrock.Options{APIKey: filed(cloudKeys[providerBedrock])}),
		providerVertex:  vertex.New(nil),
	}
}

// CloudState is the result of signing in to the cloud of a model.
type CloudState struct {
	Name string
	Err  error // why signing in failed
}

// signInTime is how long one sign-in may take.
const signInTime = 10 * time.Second

// AskClouds signs in to the clouds of the models of agents and flows as a call would, all
// at once and each for 10 s at most. It calls no model. The states are sorted by name.
func (f *File) AskClouds(ctx context.Context) []CloudState {
	found := map[string]cloud{}
	for _, def := range f.Definitions() {
		for _, name := range modelsOf(def) {
			if e, ok := f.named[name]; ok {
				// An entry with a wrong option was reported when the file was read.
				if m, _ := e.build(name, model.Extra{}); slices.Contains(cloudy, e.Provider) {
					found[name] = m.(cloud)
				}
			} else if c, ok := f.models[model.ProviderOf(name)].(cloud); ok {
				found[model.ProviderOf(name)] = c
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
			// If our time was up, the cloud's own error says only that it was cancelled.
			if states[i].Err = found[states[i].Name].Check(ctx); states[i].Err != nil && ctx.Err() != nil {
				states[i].Err = agent.Errorf(agent.CodeProviderError, "%s: signing in took longer than %s", states[i].Name, signInTime)
			}
		})
	}
	all.Wait()
	return states
}

// providersNamed lists providers for a message: "a, b or c".
func providersNamed() string {
	names := slices.Sorted(maps.Keys(providerFields))
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
