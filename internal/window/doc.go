// Package window makes a conversation fit into its model's window: how many tokens
// it has, about, which of its messages stay as they are, and what is cut of those
// that are too long. Calls stay with their results.
package window
