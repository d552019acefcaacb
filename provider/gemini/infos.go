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

// Table is what is known of the provider's models, and as of when.
func Table() model.Table { return table }

// Info tells what is known of a model; its zero value where nothing is.
func (m *Model) Info(name string) model.Info {
	terms := model.PriceTerms{ServiceTier: string(m.tier)}
	if m.tier == genai.ServiceTierStandard {
		terms.ServiceTier = ""
	}
	return table.Info(name, time.Now(), terms)
}
