// Package terminal is a command's terminal: standard output and standard error, through
// which no text from outside can control the terminal, and the key Ctrl-C.
package terminal
