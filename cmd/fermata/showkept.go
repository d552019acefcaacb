package main

import (
	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/untrusted"
)

// maxKept is how many messages, and how many calls, show lists.
const maxKept = 5

// showKept shows what a run at rest keeps until it goes on.
func showKept(row func(string, string, ...any), k *agent.Kept) {
	if k == nil {
		return
	}
	more := func(n int) {
		if n > maxKept {
			row("", "and %d more", n-maxKept)
		}
	}
	for _, m := range k.Messages[:min(len(k.Messages), maxKept)] {
		by := ""
		if m.By != "" {
			by = untrusted.Cut(untrusted.Name(m.By), 60) + ": "
		}
		row("message", "%s%s", by, untrusted.Line(m.Text, 120))
	}
	more(len(k.Messages))
	for _, c := range k.Calls[:min(len(k.Calls), maxKept)] {
		what := c.Call
		if c.Step != "" {
			what = "(" + untrusted.Name(c.Step) + ")"
		}
		if c.Decided {
			what += ", decided,"
		}
		state := "has not begun"
		if c.Asked {
			state = "ran as far as its question"
		}
		row("call", "%s %s %s", untrusted.Name(c.Tool), what, state)
	}
	more(len(k.Calls))
}
