package model_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

func TestTable(t *testing.T) {
	table := model.MustTable([]byte(`{"as_of": "2026-11-21", "sources": ["https://x"], "models": {
		"whole": {"price": {"input": 2, "output": 10, "cache_read": 0.1, "cache_write": 2.5}, "window": 1000, "max_output": 100, "reasoning": ["off", "low"]},
		"plain": {"price": {"input": 2, "output": 10}},
		"offer": {"price": {"input": 2, "output": 10}, "price_until": "2026-11-30", "window": 1000}}}`))
	usual := model.PriceTerms{}
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	whole := agent.Price{Input: 2 * agent.Dollar, Output: 10 * agent.Dollar, CacheRead: agent.Dollar / 10, CacheWrite: 5 * agent.Dollar / 2}
	plain := agent.Price{Input: 2 * agent.Dollar, Output: 10 * agent.Dollar, CacheRead: 2 * agent.Dollar, CacheWrite: 2 * agent.Dollar}
	require.Equal(t, model.Info{Price: whole, Window: 1000, MaxOutput: 100, Reasoning: []agent.Reasoning{agent.ReasoningOff, agent.ReasoningLow}}, table.Info("whole", now, usual))
	require.Equal(t, model.Info{Price: plain}, table.Info("plain", now, usual), "a cache's price that is not named")
	require.Equal(t, model.Info{}, table.Info("unknown", now, usual))

	lastMinute := time.Date(2026, 11, 30, 23, 59, 0, 0, time.UTC)
	require.Equal(t, plain, table.Info("offer", lastMinute, usual).Price, "on the last day of an offer")
	require.Equal(t, model.Info{Window: 1000}, table.Info("offer", lastMinute.Add(time.Minute), usual), "when an offer is over, nobody knows the price")
}

// What the table says of images holds for its own models, and for no other.
func TestImagesOfTable(t *testing.T) {
	table := model.MustTable([]byte(`{"as_of": "2026-11-21", "sources": ["https://x"], "files": {"image/png": 5}, "max_image_side": 8000, "models": {"m": {"window": 9}, "deaf": {"files": {}, "window": 9}}}`))
	files := map[string]int{"image/png": 5}
	require.Equal(t, model.Info{Window: 9, Files: files, MaxImageSide: 8000}, table.Info("m", time.Now(), model.PriceTerms{}))
	require.Empty(t, table.Info("deaf", time.Now(), model.PriceTerms{}).Files)
	require.Equal(t, model.Info{}, table.Info("unknown", time.Now(), model.PriceTerms{}))
}

// A price on other terms is known or zero, and never a guess.
func TestPriceOnTerms(t *testing.T) {
	table := model.MustTable([]byte(`{"as_of": "2026-11-21", "sources": ["https://x"], "models": {
		"all": {"price": {"input": 2, "output": 10, "cache_read": 0.2, "cache_write": 2.5}, "cache_write_hour": 4, "tiers": {"flex": 50, "priority": 250}, "window": 1000},
		"plain": {"price": {"input": 2, "output": 10}, "window": 1000}}}`))
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	price := func(input, output, read, write agent.USD) agent.Price {
		return agent.Price{Input: input * agent.Dollar / 100, Output: output * agent.Dollar / 100, CacheRead: read * agent.Dollar / 100, CacheWrite: write * agent.Dollar / 100}
	}
	require.Equal(t, price(200, 1000, 20, 400), table.Info("all", now, model.PriceTerms{CacheHour: true}).Price)
	require.Equal(t, price(100, 500, 10, 125), table.Info("all", now, model.PriceTerms{ServiceTier: "flex"}).Price)
	require.Equal(t, price(500, 2500, 50, 1000), table.Info("all", now, model.PriceTerms{ServiceTier: "priority", CacheHour: true}).Price)
	for _, on := range []model.PriceTerms{{ServiceTier: "flex"}, {CacheHour: true}} {
		require.Equal(t, model.Info{Window: 1000}, table.Info("plain", now, on))
	}
	require.Zero(t, table.Info("all", now, model.PriceTerms{ServiceTier: "scale"}).Price)
}

func TestBrokenTables(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":       `{`,
		"no day":        `{"as_of": "lately"}`,
		"no last day":   `{"as_of": "2026-11-21", "models": {"x": {"price_until": "soon"}}}`,
		"no percents":   `{"as_of": "2026-11-21", "models": {"x": {"tiers": {"flex": 0}}}}`,
		"unknown field": `{"as_of": "2026-11-21", "models": {"x": {"prize": {}}}}`,
	} {
		require.Panics(t, func() { model.MustTable([]byte(text)) }, name)
	}
}

// What a session is called stays with us; its calls have one key all the same.
func TestCacheKey(t *testing.T) {
	key := model.CallInfo{Session: "ana@acme.com", Turn: 1}.CacheKey()
	require.Len(t, key, 32)
	require.NotContains(t, key, "ana")
	require.Equal(t, key, model.CallInfo{Session: "ana@acme.com", Run: "r", Turn: 2}.CacheKey())
	require.NotEqual(t, key, model.CallInfo{Session: "bob@acme.com"}.CacheKey())
	require.Empty(t, model.CallInfo{Run: "r"}.CacheKey())
}
