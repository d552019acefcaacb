package model

import "strings"

// ProviderOf returns the provider in a model's full name, the part before its first slash:
// "anthropic" of "anthropic/claude-sonnet-5". It returns a name without a slash whole.
func ProviderOf(name string) string {
	before, _, _ := strings.Cut(name, "/")
	return before
}
