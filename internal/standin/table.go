package standin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/model"
)

// SaneTable checks what must be true of every row of a table of models, to find typing
// errors in prices. It also checks that docs/models.md states the table's date.
func SaneTable(t *testing.T, table model.Table) {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	docs, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	if says := "(../provider/" + filepath.Base(dir) + "/infos.json) (" + table.AsOf + ")"; !strings.Contains(string(docs), says) {
		t.Errorf("docs/models.md does not say %s", says)
	}
	asOf, err := time.Parse(time.DateOnly, table.AsOf)
	if err != nil || asOf.After(time.Now()) {
		t.Errorf("the table is as of %q", table.AsOf)
	}
	if len(table.Sources) == 0 || slices.ContainsFunc(table.Sources, func(s string) bool { return !strings.HasPrefix(s, "https://") }) {
		t.Errorf("the sources are %q", table.Sources)
	}
	if len(table.Models) == 0 {
		t.Error("the table has no model")
	}
	for _, kind := range table.ResultFiles {
		if table.Files[kind] == 0 {
			t.Errorf("the models take %s in a result, and from no user", kind)
		}
	}
	for name, row := range table.Models {
		if row.Window < 1000 || row.MaxOutput < 1000 || row.MaxOutput >= row.Window {
			t.Errorf("%s: the window is %d and the longest reply %d", name, row.Window, row.MaxOutput)
		}
		p := row.Price
		if p != (agent.Price{}) && (p.Input <= 0 || p.Output < p.Input || p.Output > 1000*agent.Dollar || p.CacheRead <= 0 || p.CacheRead > p.Input || p.CacheWrite < p.Input || p.CacheWrite > 2*p.Input) {
			t.Errorf("%s: the price is %+v", name, p)
		}
		if p == (agent.Price{}) && row.PriceUntil != "" {
			t.Errorf("%s: there is no price that could last until %s", name, row.PriceUntil)
		}
		for i, l := range row.Reasoning {
			if l.Nearest([]agent.Reasoning{l}) != l || i > 0 && l.Nearest(row.Reasoning[:i]) != row.Reasoning[i-1] {
				t.Errorf("%s: the levels of reasoning are %q", name, row.Reasoning)
			}
		}
	}
}
