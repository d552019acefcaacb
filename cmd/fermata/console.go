package main

import (
	"github.com/fermata-agents/fermata/cmd/fermata/internal/console"
)

// console is the terminal. A command has one: two would take lines from each other.
func (c *cli) console() *console.Console {
	if c.asker == nil {
		c.asker = console.NewConsole(c.in, c.Out, nil)
	}
	return c.asker
}
