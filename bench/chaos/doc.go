// Chaos plays many agent runs against everything that goes wrong: worker processes
// that are killed and stopped, a store whose writes are held back, doubled and
// reordered, a server that is killed and comes back on its file, models that fail, hang
// and break off, and people who say anything at any time. At the end it lets all of it
// come to rest, and looks whether what was promised held.
// See docs/reliability.md for what is done, what is looked at, and for figures.
package main
