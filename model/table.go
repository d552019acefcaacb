package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-agents/fermata/agent"
)

// Table is what a provider's documents say about its models on one day. Adapters keep it
// in a file beside their code, so that a price can be corrected without reading code.
type Table struct {
	// AsOf is the day on which the documents were read, "2026-11-21".
	AsOf string `json:"as_of"`
	// Sources are the documents. Note is what the rows can't express.
	Sources []string `json:"sources"`
	Note    string   `json:"note,omitempty"`
	// Search is the price of 1,000 searches that the provider makes itself, in US
	// dollars.
	Search agent.USD `json:"search,omitempty"`
	// Files are the media types that the models take as files, each with the most bytes of
	// one file. They hold for each row that has none of its own.
	Files map[string]int `json:"files,omitempty"`
	// ResultFiles are those of Files that the models also take within a tool's result. They
	// hold for each row that has none of its own.
	ResultFiles []string `json:"result_files,omitempty"`
	// MaxImageSide is the longest side of an image in pixels; zero if the documents name none.
	MaxImageSide int `json:"max_image_side,omitempty"`
	// Models are the rows, by the provider's names of the models.
	Models map[string]TableRow `json:"models"`
}

// TableRow is what is known of one model. Unknown fields are zero.
type TableRow struct {
	// Price is the price of 1,000,000 tokens in US dollars. Without a price for the
	// cache, the price of the input counts.
	Price agent.Price `json:"price,omitzero"`
	// CacheWriteHour is the price of cache writes that live for an hour.
	CacheWriteHour agent.USD `json:"cache_write_hour,omitempty"`
	// Tiers are the prices of other service tiers, in percent of Price.
	Tiers map[string]int64 `json:"tiers,omitempty"`
	// PriceUntil is the last day of the price, in UTC, if the provider has announced a
	// change; else empty.
	PriceUntil string `json:"price_until,omitempty"`
	Window     int    `json:"window,omitempty"`
	MaxOutput  int    `json:"max_output,omitempty"`
	// Reasoning are the levels that the model has, in order. It is empty for a model that
	// does not think.
	Reasoning []agent.Reasoning `json:"reasoning,omitempty"`
	// Temperature says when the model accepts a temperature.
	Temperature Temperature `json:"temperature,omitempty"`
	// Files and ResultFiles are as in [Table], for this model alone; empty, and not left out,
	// for none.
	Files       map[string]int `json:"files,omitempty"`
	ResultFiles []string       `json:"result_files,omitempty"`
}

// Temperature says when a model accepts a temperature. Empty means always.
type Temperature string

// The values of Temperature.
const (
	TemperatureNever Temperature = "never"
	// TemperatureWithoutReasoning means only in requests that turn reasoning off.
	TemperatureWithoutReasoning Temperature = "reasoning_off"
)

// Takes returns the temperature to send: want, or nil if the model would refuse it. off
// says that the request turns reasoning off.
func (t Temperature) Takes(want *float64, off bool) *float64 {
	if t == TemperatureNever || t == TemperatureWithoutReasoning && !off {
		return nil
	}
	return want
}

// PriceTerms are what a model's price depends on beside its name. The zero value means
// the usual price.
type PriceTerms struct {
	ServiceTier string // the provider's name of the service tier
	CacheHour   bool   // cache writes live for an hour
	// ServerTools are the provider's own tools that the model may use.
	ServerTools []ServerTool
}

// price returns the row's price on some terms; zero if it is unknown.
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

// PricePercent returns a percentage of a price. Adapters call it.
func PricePercent(p agent.Price, percent int64) agent.Price {
	for _, usd := range []*agent.USD{&p.Input, &p.Output, &p.CacheRead, &p.CacheWrite} {
		*usd = *usd * agent.USD(percent) / 100
	}
	return p
}

// MustTable decodes a table that is embedded in the program, and panics if it is invalid.
// A test of the adapter decodes it too. Adapters call it.
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
		for kind, most := range row.Files {
			if most < 1 || most > agent.MaxFile {
				return Table{}, fmt.Errorf("%s: files: %s has %d bytes at most", name, kind, most)
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

// Info returns what is known of a model at a time; the zero value if nothing is. A price
// that has expired, or that is unknown on these terms, is zero: no cost is guessed.
func (t Table) Info(name string, at time.Time, on PriceTerms) Info {
	row, known := t.Models[name]
	if known && row.Files == nil {
		row.Files = t.Files
	}
	if known && row.ResultFiles == nil {
		row.ResultFiles = t.ResultFiles
	}
	info := Info{Files: row.Files, ResultFiles: row.ResultFiles, Price: row.price(on), Window: row.Window, MaxOutput: row.MaxOutput, Temperature: row.Temperature, Reasoning: row.Reasoning}
	if known {
		info.MaxImageSide = t.MaxImageSide
	}
	if info.Price != (agent.Price{}) && slices.Contains(on.ServerTools, WebSearch) {
		info.Price.Search = t.Search
	}
	// A comparison of dates as text: the form puts the year first.
	if row.PriceUntil != "" && at.UTC().Format(time.DateOnly) > row.PriceUntil {
		info.Price = agent.Price{}
	}
	return info
}
