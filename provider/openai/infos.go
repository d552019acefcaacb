package openai

import (
	_ "embed"
	"regexp"
	"time"

	"github.com/fermata-agents/fermata/model"
)

//go:embed infos.json
var infos []byte

var table = model.MustTable(infos)

// Table returns what is known of OpenAI's own models, and since when.
func Table() model.Table { return table }

// snapshot matches the date at the end of a fixed version's name.
var snapshot = regexp.MustCompile(`-\d{4}-\d\d-\d\d$`)

// family returns the name of a model without its version's date.
func family(name string) string { return snapshot.ReplaceAllString(name, "") }

// priced returns the table's name of a tier. Two tiers have the usual price, and two
// names mean the same tier.
func priced(tier string) string {
	switch tier {
	case "auto", "default":
		return ""
	case "fast":
		return "priority"
	}
	return tier
}

// Info returns what is known of a model; the zero value if nothing is.
func (m *Model) Info(name string) model.Info {
	info, ok := m.with.Infos[name]
	if !ok {
		info = table.Info(family(name), time.Now(), model.PriceTerms{ServiceTier: priced(m.with.ServiceTier), ServerTools: m.with.ServerTools})
	}
	if m.api != Responses {
		info.ResultFiles = nil // Chat Completions has only text in a result
	}
	return info
}
