// Package console speaks with the person at a terminal: it asks for a line, and
// for the answer to what a run asks. It sends nothing anywhere.
package console
