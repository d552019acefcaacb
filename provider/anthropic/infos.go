package anthropic

import (
	_ "embed"
	"regexp"
	"time"

	"github.com/fermata-agents/fermata/model"
)

//go:embed infos.json
var infos []byte

var table = model.MustTable(infos)

// Table returns what is known of the provider's models, and since when.
func Table() model.Table { return table }

// snapshot matches the end of a fixed version's name: a date or, on Vertex, what follows
// the @.
var snapshot = regexp.MustCompile(`-\d{8}$|@(\d{8}|default)$`)

// family returns the name of a model without its version.
func family(name string) string { return snapshot.ReplaceAllString(name, "") }

// Info returns what is known of a model; the zero value if nothing is.
func (m *Model) Info(name string) model.Info {
	info := table.Info(family(name), time.Now(), model.PriceTerms{CacheHour: m.hour, ServerTools: m.serves})
	if m.cites {
		info = withText(info)
	}
	return info
}
