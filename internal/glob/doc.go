// Package glob matches names of agents and tools with the patterns in rules, ceilings and
// policies.
package glob
