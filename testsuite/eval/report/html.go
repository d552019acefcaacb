package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/testsuite/eval"
	"github.com/fermata-agents/fermata/testsuite/eval/stats"
)

//go:embed report.html
var page string

// The template escapes by the place in the page. clean is for what no escape shows.
var pageTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"clean":   clean,
	"percent": func(f float64) string { return fmt.Sprintf("%.0f %%", 100*f) },
	"estimate": func(e stats.Estimate) string {
		return fmt.Sprintf("%.0f %% (%.0f to %.0f)", 100*e.Rate, 100*e.Low, 100*e.High)
	},
	"usd":      func(u agent.USD) string { return "$" + u.String() },
	"duration": func(d agent.Duration) string { return time.Duration(d).Round(time.Millisecond).String() },
	"time":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"join":     func(list []string) string { return strings.Join(list, ", ") },
}).Parse(page))

// HTML writes the report as one page without scripts, and without anything to load.
func (r *Report) HTML(w io.Writer) error {
	return pageTemplate.Execute(w, struct {
		*Report
		Trials []eval.Trial
	}{r, r.trials})
}
