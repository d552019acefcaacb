package agentsfile

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/anthropic"
	"github.com/fermata-agents/fermata/provider/bedrock"
	"github.com/fermata-agents/fermata/provider/gemini"
	"github.com/fermata-agents/fermata/provider/openai"
	"github.com/fermata-agents/fermata/testsuite"
)

// The providers that are always available.
const (
	providerAnthropic = "anthropic"
	providerGemini    = "gemini"
	providerOpenAI    = "openai"
)

// tables are what the adapters know of their providers' models.
var tables = map[string]model.Table{
	providerAnthropic: anthropic.Table(), providerGemini: gemini.Table(), providerOpenAI: openai.Table(),
	providerBedrock: bedrock.Table(), providerVertex: anthropic.Table(), // on Vertex only Claude's prices are known
}

// scriptPrefix marks the name of a model that answers from a file.
const scriptPrefix = "script:"

// keys are the environment variables with the providers' keys, in the order in which they
// are read. The first is the one to set if none is.
var keys = map[string][]string{
	providerAnthropic: {"ANTHROPIC_API_KEY"}, providerGemini: {"GEMINI_API_KEY", "GOOGLE_API_KEY"}, providerOpenAI: {"OPENAI_API_KEY"},
}

// keyOfProvider returns the variable that has, or should have, a provider's key.
func keyOfProvider(provider string) string {
	// The variable that is set counts, even if it is not the usual one.
	for _, env := range keys[provider] {
		if secret.IsSet(env) {
			return env
		}
	}
	if len(keys[provider]) == 0 {
		return ""
	}
	return keys[provider][0]
}

// noKey stands for a key that the file names and the environment lacks. It also stands
// for the key of the user's own server without api_key_env: the provider's key must not
// be sent there.
const noKey = "none"

func providers() map[string]model.Model {
	all := clouds()
	all[providerAnthropic] = anthropic.New(&anthropic.Options{APIKey: filed(keys[providerAnthropic]...)})
	all[providerGemini] = gemini.New(&gemini.Options{APIKey: filed(keys[providerGemini]...)})
	all[providerOpenAI] = openai.New(&openai.Options{APIKey: filed(keys[providerOpenAI]...)})
	return all
}

func (f *File) readModels(c *checker, part entry) {
	for _, e := range c.mapping(part, "names of models, each with its fields below") {
		where := "models." + e.name
		// A name that starts with script: would never be reached.
		if e.name == "" || known(e.name) || strings.HasPrefix(e.name, scriptPrefix) {
			c.add(agent.CodeInvalidInput, e.key, "%s: the name is taken; use another", where)
			continue
		}
		entry, ok := decode[modelEntry](c, e, where)
		if !ok {
			continue
		}
		if at, err := entry.fault(e); err != nil {
			c.add(agent.CodeInvalidInput, at, "%s%w", where, err)
			continue
		}
		m, err := entry.open(e.name)
		if err != nil {
			var what *agent.Error
			errors.As(err, &what)
			c.add(what.Code, e.at(what.Path), "%s.%w", where, err)
			continue
		}
		// A price of zero throughout is none, so the table's would count.
		if at := e.at("price"); at != e.key && entry.Price == (agent.Price{}) && m.Info(entry.Model).Price != (agent.Price{}) {
			c.add(agent.CodeInvalidInput, at, "%s.price is zero, and the price of %s is known; leave it out for that price", where, entry.Model)
			continue
		}
		f.named[e.name], f.models[e.name] = entry, m
	}
}

// resolve checks that a model of this name exists. It reads a script, relative to dir.
func (f *File) resolve(name, dir string) error {
	// The name of a provider alone is no model.
	if _, ok := f.models[name]; ok && !known(name) {
		return nil
	}
	if path, ok := strings.CutPrefix(name, scriptPrefix); ok {
		f.scripts = append(f.scripts, within(dir, path))
		// Recorded above: no tool may write a script, which decides what runs.
		script, err := testsuite.LoadScript(within(dir, path))
		if err != nil {
			return err
		}
		f.models[name] = script
		return nil
	}
	if provider, own, _ := strings.Cut(name, "/"); known(provider) && own != "" {
		return nil
	}
	err := agent.Errorf(agent.CodeUnknownModel, "model %s is not known: write anthropic/NAME, gemini/NAME, openai/NAME, azure/NAME, bedrock/NAME, vertex/NAME, script:FILE, or a name from models%s", quote(name), f.modelNames())
	return err.WithPath("model")
}

// UseModel makes a model available that no agent names, such as a judge's, and checks that
// its key is there. A script's path is relative to dir.
func (f *File) UseModel(name, dir string) error {
	if err := f.resolve(name, dir); err != nil {
		return err
	}
	for _, env := range f.keysOf(name) {
		if !secret.IsSet(env) {
			return agent.Errorf(agent.CodeProviderAuth, "the model %s needs a key: set %s in the environment", name, env)
		}
	}
	return nil
}

func (f *File) modelNames() string {
	if len(f.named) == 0 {
		return ""
	}
	return " (" + strings.Join(slices.Sorted(maps.Keys(f.named)), ", ") + ")"
}

// info returns what is known of a model.
func (f *File) info(name string) model.Info {
	if m, ok := f.models[name]; ok {
		return m.Info(name)
	}
	provider, own, _ := strings.Cut(name, "/")
	return f.models[provider].Info(own)
}

func (f *File) price(name string) agent.Price { return f.info(name).Price }

// Priced reports whether a model's price is known. Scripts and the user's own models may
// cost nothing, unless options with a price of their own are used.
func (f *File) Priced(name string) bool {
	e, own := f.named[name]
	return own && !e.onTerms() || strings.HasPrefix(name, scriptPrefix) || f.price(name) != (agent.Price{})
}

// ModelsWithoutTemperature lists an agent's models that do not get its temperature, since
// they would refuse the request.
func (f *File) ModelsWithoutTemperature(def agent.Definition) (list []string) {
	unthinking := def.Reasoning == "" && def.ReasoningPolicy == nil || def.Reasoning == agent.ReasoningOff
	for _, name := range def.Models() {
		if def.Temperature != nil && f.info(name).Temperature.Takes(def.Temperature, unthinking) == nil {
			list = append(list, name)
		}
	}
	return list
}

// A PriceTable says how old the prices of a provider's models are.
type PriceTable struct{ Provider, AsOf string }

// Unpriced lists the models that an agent or a flow calls and whose price is not known, its
// judges' among them.
func (f *File) Unpriced(def agent.Definition) []string {
	list := modelsOf(def)
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), f.Priced)
}

// PriceTables lists the tables of the prices of the models that the agents and flows call.
func (f *File) PriceTables() []PriceTable {
	used := map[string]bool{}
	for _, def := range f.Definitions() {
		for _, name := range modelsOf(def) {
			// The price table belongs to the provider that really serves the model.
			provider, own, _ := strings.Cut(name, "/")
			if e, ok := f.named[name]; ok {
				provider, own = e.Provider, e.Model
				if e.Price != (agent.Price{}) {
					continue
				}
			}
			if own != "" && f.price(name) != (agent.Price{}) && tables[provider].AsOf != "" {
				used[provider] = true
			}
		}
	}
	var list []PriceTable
	for _, provider := range slices.Sorted(maps.Keys(used)) {
		list = append(list, PriceTable{Provider: provider, AsOf: tables[provider].AsOf})
	}
	return list
}

// Models returns the models for a worker's options.
func (f *File) Models() map[string]model.Model { return f.models }

// A Key is an environment variable for a model's key.
type Key struct {
	Env    string
	Set    bool
	Agents []string // the agents and flows whose models need it
}

// Keys lists the keys that the models of the agents, the flows and their judges need. It never
// shows values.
func (f *File) Keys() []Key {
	byEnv := map[string]*Key{}
	for _, def := range f.Definitions() {
		for _, name := range modelsOf(def) {
			for _, env := range f.keysOf(name) {
				k, ok := byEnv[env]
				if !ok {
					// Only whether it is set: the value must not reach a finding.
					k = &Key{Env: env, Set: secret.IsSet(env)}
					byEnv[env] = k
				}
				if !slices.Contains(k.Agents, def.Name) {
					k.Agents = append(k.Agents, def.Name)
				}
			}
		}
	}
	var list []Key
	for _, env := range slices.Sorted(maps.Keys(byEnv)) {
		list = append(list, *byEnv[env])
	}
	return list
}

// keysOf returns the variables that a model needs.
func (f *File) keysOf(name string) (list []string) {
	if e, ok := f.named[name]; ok {
		return e.keys()
	}
	if strings.HasPrefix(name, scriptPrefix) || providerElsewhere(name) {
		return nil
	}
	if env := keyOfProvider(model.ProviderOf(name)); env != "" {
		list = append(list, env)
	}
	return list
}

// providerElsewhere reports whether the environment sends a provider's requests to the
// user's own server, which may need no key.
func providerElsewhere(name string) bool {
	return model.ProviderOf(name) == providerOpenAI && os.Getenv("OPENAI_BASE_URL") != ""
}

// MissingKey returns an error if an agent's model, a fallback or the model of a judge lacks
// its key; nil if not.
func (f *File) MissingKey(name string) error {
	for _, k := range f.Keys() {
		if k.Set || !slices.Contains(k.Agents, name) {
			continue
		}
		def, _ := f.Agent(name)
		uses := usesOf(def)
		use := uses[slices.IndexFunc(uses, func(u modelUse) bool { return slices.Contains(f.keysOf(u.model), k.Env) })]
		return agent.Errorf(agent.CodeProviderAuth, "%s:%d: agent %s: its model %s needs a key: set %s in the environment, or give it a model that needs none",
			f.Path, f.lines[name].at(use.at).Line, name, use.model, k.Env)
	}
	return nil
}
