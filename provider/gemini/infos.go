package gemini

import (
	_ "embed"
	"time"

	"github.com/fermata-agents/fermata/model"
)

//go:embed infos.json
var infos []byte

var table = model.MustTable(infos)

// Table is what is known of the provider's models, and as of when.
func Table() model.Table { return table }

// Info tells what is known of a model; its zero value where nothing is.
func (*Model) Info(name string) model.Info { return table.Info(name, time.Now()) }
