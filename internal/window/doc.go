// Package window makes a conversation fit into its model's window. It estimates tokens,
// chooses the messages that stay, and cuts texts that are too long. Calls stay with their
// results.
package window
