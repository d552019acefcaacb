// Package live carries what runs are doing right now and nobody records: pieces of
// replies, and progress of tools. Workers publish to a [Sink]; readers subscribe to a
// [Source]. [Hub] is both, within one process. A broker between processes implements the
// same two interfaces.
//
// Nothing depends on a live event. It may be late or lost; the log has everything it
// said.
package live
