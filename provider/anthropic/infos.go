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

// Table is what is known of the provider's models, and as of when.
func Table() model.Table { return table }

// snapshot is the date that ends the name of a fixed version of a model; on Vertex, what
// follows the sign.
var snapshot = regexp.MustCompile(`-\d{8}$|@(\d{8}|default)$`)

// family is the name of a model without its version's date.
func family(name string) string { return snapshot.ReplaceAllString(name, "") }

// Info tells what is known of a model; its zero value where nothing is.
func (m *Model) Info(name string) model.Info {
	return table.Info(family(name), time.Now(), model.PriceTerms{CacheHour: m.hour, ServerTools: m.serves})
}
