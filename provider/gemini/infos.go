package gemini

import (
	_ "embed"
	"time"

	"google.golang.org/genai"

	"github.com/fermata-agents/fermata/model"
)

//go:embed infos.json
var infos []byte

var table = model.MustTable(infos)

// Table returns what is known of the provider's models, and since when.
func Table() model.Table { return table }

// Info returns what is known of a model; the zero value if nothing is.
func (m *Model) Info(name string) model.Info {
	terms := model.PriceTerms{ServiceTier: string(m.tier)}
	if m.tier == genai.ServiceTierStandard {
		terms.ServiceTier = ""
	}
	return table.Info(name, time.Now(), terms)
}
