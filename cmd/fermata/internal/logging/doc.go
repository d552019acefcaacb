// Package logging is the log of the process: one line an entry, on which nothing from outside
// can steer the terminal.
package logging
