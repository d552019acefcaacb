// Package workflows is the shell around the loop machine: it receives what
// happens, hands it to [loop.Step], and performs the effects. It decides
// nothing about agents; it knows how Temporal wants things done.
package workflows
