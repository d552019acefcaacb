// Hold is a program whose agent has to be let pay, is interrupted, and is stopped
// with a handoff.
package main
