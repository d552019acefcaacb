package bedrock

import (
	_ "embed"
	"regexp"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

//go:embed infos.json
var infos []byte

var table = model.MustTable(infos)

// Table returns what is known of Bedrock's models, and since when. Prices are those of
// global profiles, for models that have one.
func Table() model.Table { return table }

// Parts of the ids of models and profiles: "arn:aws:bedrock:REGION:ACCOUNT:KIND/" before
// them, where a profile may send a request, and the version at their end.
var (
	arn     = regexp.MustCompile(`^arn:[^/]*/`)
	reach   = regexp.MustCompile(`^(global|us|us-gov|eu|apac|jp|au|ca)\.`)
	version = regexp.MustCompile(`(-\d{8})?(-v\d+(:\d+)*)?(:\d+[a-z]?)*$`)
)

// family returns the name of a model without its region and version.
func family(id string) string {
	name := reach.ReplaceAllString(arn.ReplaceAllString(id, ""), "")
	return version.ReplaceAllString(name, "")
}

// nearerCosts is the price of a request that stays in one region or geography, in percent of the
// table's price. It applies to models that also have a global profile.
const nearerCosts = 110

// Info returns what is known of a model; the zero value if nothing is.
func (m *Model) Info(id string) model.Info {
	terms := model.PriceTerms{ServiceTier: m.tier, CacheHour: m.hour && strings.HasPrefix(family(id), claudes)}
	if m.tier == tierDefault {
		terms.ServiceTier = ""
	}
	info := table.Info(family(id), time.Now(), terms)
	// Only global profiles have the table's price.
	global := strings.HasPrefix(arn.ReplaceAllString(id, ""), "global.")
	if !global && info.Price != (agent.Price{}) && hasGlobal(family(id)) {
		info.Price = model.PricePercent(info.Price, nearerCosts)
	}
	return info
}

// hasGlobal reports whether a model's price in the table is that of a global profile:
// the models of Claude from version 4.5 on, and Nova from version 2 on.
func hasGlobal(name string) bool {
	return strings.HasPrefix(name, claudes) || strings.HasPrefix(name, nova2)
}
