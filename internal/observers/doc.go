// Package observers passes what a worker's runs do to its observers. Each observer has a
// queue and a goroutine of its own, so no run and no other observer waits for it.
package observers
