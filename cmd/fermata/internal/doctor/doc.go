// Package doctor checks everything that runs need: the server, its namespace, workers,
// the store, keys, the agents file with its models and servers, and what confines
// programs. It changes nothing.
package doctor
