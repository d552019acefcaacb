// Package live carries what runs are doing right now and nobody records: pieces
// of replies and remarks of tools. Workers publish it to a [Sink], readers hear
// it from a [Source]. [Hub] is both, for workers and readers of one process;
// whatever crosses processes (a broker, a socket) implements the two.
//
// Nothing waits for a live event and nothing rests on one: it may come late, or
// be lost, and what is recorded says all of it again as a whole.
package live
