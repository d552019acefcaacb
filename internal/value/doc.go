// Package value turns Go values into the texts that agents read and write, and back.
package value
