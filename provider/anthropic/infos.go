package anthropic

import (
	"regexp"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

const (
	thousand = 1_000
	million  = 1_000_000
)

// infos is what is known of the models, per million tokens, with cache writes
// for five minutes. As of 2026-11-21, from the pages "Pricing" and "Models" of
// platform.claude.com/docs and the list of models of the SDK v1.84.0.
//
// claude-haiku-5-5 costs five times as much in a request with more than 100,000
// tokens of input, which a Price can't say.
var infos = map[string]model.Info{
	"claude-fable-5-1":  {Price: price(10, 50, 0.25, 12.5), Window: million, MaxOutput: 128 * thousand},
	"claude-mythos-5-1": {Price: price(10, 50, 0.25, 12.5), Window: million, MaxOutput: 128 * thousand},
	"claude-opus-5-5":   {Price: price(4, 20, 0.2, 5), Window: million, MaxOutput: 128 * thousand},
	"claude-sonnet-5-5": {Price: price(2, 10, 0.1, 2.5), Window: million, MaxOutput: 128 * thousand},
	"claude-haiku-5-5":  {Price: price(0.1, 0.5, 0.01, 0.125), Window: million, MaxOutput: 128 * thousand},
	"claude-fable-5":    {Price: price(10, 50, 1, 12.5), Window: million, MaxOutput: 128 * thousand},
	"claude-mythos-5":   {Price: price(10, 50, 1, 12.5), Window: million, MaxOutput: 128 * thousand},
	"claude-opus-5":     {Price: price(5, 25, 0.5, 6.25), Window: million, MaxOutput: 128 * thousand},
	"claude-sonnet-5":   {Price: price(2, 10, 0.2, 2.5), Window: million, MaxOutput: 128 * thousand},
	"claude-opus-4-8":   {Price: price(5, 25, 0.5, 6.25), Window: million, MaxOutput: 128 * thousand},
	"claude-opus-4-7":   {Price: price(5, 25, 0.5, 6.25), Window: million, MaxOutput: 128 * thousand},
	"claude-opus-4-6":   {Price: price(5, 25, 0.5, 6.25), Window: million, MaxOutput: 128 * thousand},
	"claude-sonnet-4-6": {Price: price(3, 15, 0.3, 3.75), Window: million, MaxOutput: 64 * thousand},
	"claude-opus-4-5":   {Price: price(5, 25, 0.5, 6.25), Window: 200 * thousand, MaxOutput: 64 * thousand},
	"claude-sonnet-4-5": {Price: price(3, 15, 0.3, 3.75), Window: 200 * thousand, MaxOutput: 64 * thousand},
	"claude-haiku-4-5":  {Price: price(1, 5, 0.1, 1.25), Window: 200 * thousand, MaxOutput: 64 * thousand},
}

// snapshot is the date that ends the name of a fixed version of a model.
var snapshot = regexp.MustCompile(`-\d{8}$`)

// Info tells what is known of a model; its zero value where nothing is.
func (*Model) Info(name string) model.Info { return infos[snapshot.ReplaceAllString(name, "")] }

// price makes a price from dollars per million tokens.
func price(input, output, cacheRead, cacheWrite float64) agent.Price {
	usd := func(dollars float64) agent.USD { return agent.USD(dollars*float64(agent.Dollar) + 0.5) }
	return agent.Price{Input: usd(input), Output: usd(output), CacheRead: usd(cacheRead), CacheWrite: usd(cacheWrite)}
}
