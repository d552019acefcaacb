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

// Table is what is known of OpenAI's own models, and as of when.
func Table() model.Table { return table }

// snapshot is the date that ends the name of a fixed version of a model.
var snapshot = regexp.MustCompile(`-\d{4}-\d\d-\d\d$`)

// family is the name of a model without its version's date.
func family(name string) string { return snapshot.ReplaceAllString(name, "") }

// priced is a tier as the table has it: two have the usual price, and two words are one.
func priced(tier string) string {
	switch tier {
	case "auto", "default":
		return ""
	case "fast":
		return "priority"
	}
	return tier
}

// Info tells what is known of a model; its zero value where nothing is.
func (m *Model) Info(name string) model.Info {
	if info, ok := m.with.Infos[name]; ok {
		return info
	}
	return table.Info(family(name), time.Now(), model.PriceTerms{ServiceTier: priced(m.with.ServiceTier), ServerTools: m.with.ServerTools})
}
