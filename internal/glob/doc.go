// Package glob matches names of agents and tools with the patterns that rules, ceilings and
// policies have.
package glob
