// Package agent is the vocabulary of fermata: plain, serialisable values that
// every other room speaks in, and nothing else. It imports no other package of
// this project, no Temporal and no vendor.
package agent
