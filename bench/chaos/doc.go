// Chaos runs many agents while everything goes wrong. Worker processes are killed and
// stopped. The store's writes are held back, doubled and reordered. The server is killed
// and restarts on its file. Models fail, hang and break off. People send anything at any
// time. At the end Chaos waits until all runs are suspended or ended, and checks whether the
// promises held. See docs/reliability.md for what is done and checked, and for figures.
package main
