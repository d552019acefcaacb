package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// dashboard is the part of a Grafana dashboard that is checked. The tests of module
// telemetry check that its queries name exported metrics, and all of them.
type dashboard struct {
	Title      string
	UID        string
	Templating struct {
		List []struct{ Name, Query string }
	}
	Panels []panel
}

type panel struct {
	ID         int
	Title      string
	Datasource struct{ UID string }
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct{ RefID, Expr string }
}

// variable matches a Grafana variable in a query.
var variable = regexp.MustCompile(`\$\{?(\w+)`)

// grafana checks a dashboard.
func grafana(path string, data []byte) (faults []string) {
	fault := func(format string, args ...any) {
		faults = append(faults, path+": "+fmt.Sprintf(format, args...))
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		if at, ok := err.(*json.SyntaxError); ok {
			return []string{fmt.Sprintf("%s:%d: %v", path, 1+strings.Count(string(data[:at.Offset]), "\n"), err)}
		}
		return []string{fmt.Sprintf("%s: %v", path, err)}
	}
	if d.Title == "" || d.UID == "" || len(d.Panels) == 0 {
		fault("needs a title, a uid and panels")
	}
	variables := []string{"__rate_interval"}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	declared := func(where, text string) {
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(variables, m[1]) {
				fault("%s: templating.list declares no %q", where, m[1])
			}
		}
	}
	for i, p := range d.Panels {
		where := fmt.Sprintf("panels[%d] %q", i, p.Title)
		declared(where, p.Datasource.UID)
		refs := map[string]bool{}
		for _, t := range p.Targets {
			declared(where, t.Expr)
			if open := unclosed(t.Expr); open != "" || t.Expr == "" {
				fault("%s: target %q: %q is empty or does not end where it began: %s", where, t.RefID, t.Expr, open)
			}
			if refs[t.RefID] {
				fault("%s: two targets are %q", where, t.RefID)
			}
			refs[t.RefID] = true
		}
		for _, other := range d.Panels[:i] {
			if other.ID == p.ID {
				fault("%s: %q has the id %d, too", where, other.Title, p.ID)
			}
			a, b := p.GridPos, other.GridPos
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				fault("%s: lies over %q", where, other.Title)
			}
		}
	}
	return faults
}

// unclosed returns a bracket or quote of a query that has no counterpart.
func unclosed(query string) string {
	closes := map[rune]rune{')': '(', ']': '[', '}': '{'}
	var open []rune
	quoted := false
	for _, r := range query {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case strings.ContainsRune("([{", r):
			open = append(open, r)
		case closes[r] != 0:
			if len(open) == 0 || open[len(open)-1] != closes[r] {
				return string(r)
			}
			open = open[:len(open)-1]
		}
	}
	if quoted {
		return `"`
	}
	return string(open)
}
