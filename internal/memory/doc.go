// Package memory carries out the commands of the tool memory, with which a model keeps files over
// sessions. The commands and their answers are those that models know from the memory tool of
// Anthropic's API.
package memory
