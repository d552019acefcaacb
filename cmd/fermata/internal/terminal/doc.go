// Package terminal is what a command has of its terminal: standard output and standard
// error, on which nothing from outside can steer the terminal, and the key Ctrl-C.
package terminal
