// Package logging is the log of the process: one line an entry, in which no text from
// outside can control the terminal.
package logging
