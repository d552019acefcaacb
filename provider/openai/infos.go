package openai

import (
	"regexp"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

const (
	thousand = 1_000
	million  = 1_000_000
)

// infos is what is known of OpenAI's own models, per million tokens, with cache
// writes for half an hour where they cost. As of 2026-11-21, from the pages
// "Pricing" and "Models" of developers.openai.com/api/docs and the list of
// models of the SDK v3.95.0.
//
// From gpt-5.4 on (not the mini) a request with more than 272,000 tokens of
// input costs twice as much for input and half as much again for output, which
// a Price can't say. The price of gpt-5.6-sol changes with a promotion; older
// models, whose sizes do not change, stand at the end without one.
var infos = map[string]model.Info{
	"gpt-6-astra":   {Price: price(10, 50, 1, 12.5), Window: 1050 * thousand, MaxOutput: 128 * thousand},
	"gpt-6.1-sol":   {Price: price(2, 10, 0.1, 2.5), Window: 1050 * thousand, MaxOutput: 128 * thousand},
	"gpt-6.1-terra": {Price: price(1, 5, 0.05, 1.25), Window: 1050 * thousand, MaxOutput: 128 * thousand},
	"gpt-6-sol":     {Price: price(2, 10, 0.2, 2.5), Window: 1050 * thousand, MaxOutput: 128 * thousand},
	"gpt-6-luna":    {Price: price(0.1, 0.5, 0.01, 0.125), Window: 1050 * thousand, MaxOutput: 128 * thousand},
	"gpt-5.6-sol":   {Window: 1050 * thousand, MaxOutput: 128 * thousand},
	"gpt-5.6-terra": {Price: price(2, 12, 0.2, 2.5), Window: 1050 * thousand, MaxOutput: 128 * thousand},
	"gpt-5.5":       {Price: price(5, 30, 0.5, 0), Window: 1050 * thousand, MaxOutput: 128 * thousand},
	"gpt-5.4":       {Price: price(2.5, 15, 0.25, 0), Window: 1050 * thousand, MaxOutput: 128 * thousand},
	"gpt-5.4-mini":  {Price: price(0.75, 4.5, 0.075, 0), Window: 400 * thousand, MaxOutput: 128 * thousand},
	"gpt-5.2":       {Price: price(1.75, 14, 0.175, 0), Window: 400 * thousand, MaxOutput: 128 * thousand},
	"gpt-5.1":       {Price: price(1.25, 10, 0.125, 0), Window: 400 * thousand, MaxOutput: 128 * thousand},
	"gpt-5":         {Price: price(1.25, 10, 0.125, 0), Window: 400 * thousand, MaxOutput: 128 * thousand},
	"gpt-5-mini":    {Price: price(0.25, 2, 0.025, 0), Window: 400 * thousand, MaxOutput: 128 * thousand},
	"gpt-5-nano":    {Price: price(0.05, 0.4, 0.005, 0), Window: 400 * thousand, MaxOutput: 128 * thousand},
	"gpt-4.1":       {Price: price(2, 8, 0.5, 0), Window: 1_047_576, MaxOutput: 32_768},
	"gpt-4.1-mini":  {Price: price(0.4, 1.6, 0.1, 0), Window: 1_047_576, MaxOutput: 32_768},
	"gpt-4o":        {Price: price(2.5, 10, 1.25, 0), Window: 128 * thousand, MaxOutput: 16_384},
	"gpt-4o-mini":   {Price: price(0.15, 0.6, 0.075, 0), Window: 128 * thousand, MaxOutput: 16_384},
	"gpt-4.1-nano":  {Window: 1_047_576, MaxOutput: 32_768},
	"gpt-4-turbo":   {Window: 128 * thousand, MaxOutput: 4096},
	"o4-mini":       {Window: 200 * thousand, MaxOutput: 100 * thousand},
	"o3":            {Window: 200 * thousand, MaxOutput: 100 * thousand},
	"o3-mini":       {Window: 200 * thousand, MaxOutput: 100 * thousand},
	"o1":            {Window: 200 * thousand, MaxOutput: 100 * thousand},
}

// snapshot is the date that ends the name of a fixed version of a model.
var snapshot = regexp.MustCompile(`-\d{4}-\d\d-\d\d$`)

// Info tells what is known of a model; its zero value where nothing is.
func (m *Model) Info(name string) model.Info {
	if info, ok := m.infos[name]; ok {
		return info
	}
	return infos[snapshot.ReplaceAllString(name, "")]
}

// price makes a price from dollars per million tokens. Where writing to the
// cache costs nothing extra, what is written costs what input costs.
func price(input, output, cacheRead, cacheWrite float64) agent.Price {
	if cacheWrite == 0 {
		cacheWrite = input
	}
	usd := func(dollars float64) agent.USD { return agent.USD(dollars*float64(agent.Dollar) + 0.5) }
	return agent.Price{Input: usd(input), Output: usd(output), CacheRead: usd(cacheRead), CacheWrite: usd(cacheWrite)}
}
