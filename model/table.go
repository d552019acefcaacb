package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Table is what a provider's documents say of its models on a day. Adapters keep
// it in a file beside their code, so that a price is mended without reading it.
type Table struct {
	// AsOf is the day on which the documents were read, "2026-11-21".
	AsOf string `json:"as_of"`
	// Sources are the documents, and Note is what of them the rows can't say.
	Sources []string `json:"sources"`
	Note    string   `json:"note,omitempty"`
	// Search is what a thousand searches cost that the provider makes itself, in US dollars.
	Search agent.USD `json:"search,omitempty"`
	// Models are the rows, by the provider's names.
	Models map[string]TableRow `json:"models"`
}

// TableRow is what is known of one model. What is not known is zero.
type TableRow struct {
	// Price is in US dollars for a million tokens. A cache's price that is left out
	// is that of the input.
	Price agent.Price `json:"price,omitzero"`
	// CacheWriteHour is what writes to the cache cost that live for an hour.
	CacheWriteHour agent.USD `json:"cache_write_hour,omitempty"`
	// Tiers are how much of the price other tiers of service cost, in percent.
	Tiers map[string]int64 `json:"tiers,omitempty"`
	// PriceUntil is the last day, in UTC, of a price that the provider has said will
	// change; empty if it has not.
	PriceUntil string `json:"price_until,omitempty"`
	Window     int    `json:"window,omitempty"`
	MaxOutput  int    `json:"max_output,omitempty"`
	// Reasoning are the levels that the model has, in their order. Empty is a model
	// that does not think.
	Reasoning []agent.Reasoning `json:"reasoning,omitempty"`
	// Temperature says when the model takes one.
	Temperature Temperature `json:"temperature,omitempty"`
}

// Temperature says when a model takes a temperature. Empty is always.
type Temperature string

// When a model takes a temperature.
const (
	TemperatureNever Temperature = "never"
	// TemperatureWithoutReasoning is a model that takes one in requests whose reasoning is off.
	TemperatureWithoutReasoning Temperature = "reasoning_off"
)

// Takes is the temperature that a model is sent: want, or nil where the model would
// refuse it. Off says that the request turns the model's reasoning off.
func (t Temperature) Takes(want *float64, off bool) *float64 {
	if t == TemperatureNever || t == TemperatureWithoutReasoning && !off {
		return nil
	}
	return want
}

// PriceTerms are what a model's price depends on besides its name. Their zero value is the
// usual price.
type PriceTerms struct {
	ServiceTier string // of service, by the provider's word
	CacheHour   bool   // what is written to the cache lives for an hour
	// ServerTools are those of the provider that the model may use.
	ServerTools []ServerTool
}

// price is the row's on some terms; zero if it is not known.
func (r TableRow) price(on PriceTerms) agent.Price {
	p := r.Price
	if on.CacheHour {
		if p.CacheWrite = r.CacheWriteHour; r.CacheWriteHour == 0 {
			return agent.Price{}
		}
	}
	if on.ServiceTier != "" {
		p = PricePercent(p, r.Tiers[on.ServiceTier])
	}
	return p
}

// PricePercent is so many percent of a price. It is for adapters.
func PricePercent(p agent.Price, percent int64) agent.Price {
	for _, usd := range []*agent.USD{&p.Input, &p.Output, &p.CacheRead, &p.CacheWrite} {
		*usd = *usd * agent.USD(percent) / 100
	}
	return p
}

// MustTable reads a table that is part of the program, and panics where it is not
// one: a test of the adapter's sees to that. It is for adapters.
func MustTable(data []byte) Table {
	t, err := readTable(data)
	if err != nil {
		panic(fmt.Sprintf("the table of models can't be read: %v", err))
	}
	return t
}

func readTable(data []byte) (Table, error) {
	var t Table
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return Table{}, err
	}
	if _, err := time.Parse(time.DateOnly, t.AsOf); err != nil {
		return Table{}, fmt.Errorf("as_of: %w", err)
	}
	for name, row := range t.Models {
		if !slices.Contains([]Temperature{"", TemperatureNever, TemperatureWithoutReasoning}, row.Temperature) {
			return Table{}, fmt.Errorf("%s: temperature is %q", name, row.Temperature)
		}
		if row.PriceUntil != "" {
			if _, err := time.Parse(time.DateOnly, row.PriceUntil); err != nil {
				return Table{}, fmt.Errorf("%s: price_until: %w", name, err)
			}
		}
		for tier, percent := range row.Tiers {
			if percent <= 0 || tier == "" {
				return Table{}, fmt.Errorf("%s: tier %q is %d percent of the price", name, tier, percent)
			}
		}
		for _, cache := range []*agent.USD{&row.Price.CacheRead, &row.Price.CacheWrite} {
			if *cache == 0 {
				*cache = row.Price.Input
			}
		}
		t.Models[name] = row
	}
	return t, nil
}

// Info is what is known of a model at a time; its zero value where nothing is. A
// price whose last day has passed, or that is not known on these terms, is zero: no
// cost is guessed.
func (t Table) Info(name string, at time.Time, on PriceTerms) Info {
	row := t.Models[name]
	info := Info{Price: row.price(on), Window: row.Window, MaxOutput: row.MaxOutput, Temperature: row.Temperature}
	if info.Price != (agent.Price{}) && slices.Contains(on.ServerTools, WebSearch) {
		info.Price.Search = t.Search
	}
	if row.PriceUntil != "" && at.UTC().Format(time.DateOnly) > row.PriceUntil {
		info.Price = agent.Price{}
	}
	return info
}
