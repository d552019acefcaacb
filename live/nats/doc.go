// Package nats carries live events over NATS, from workers to readers in other processes.
// [Live] is a [live.Sink] and a [live.Source].
//
//	conn, err := broker.Connect("nats://nats.acme.com", broker.MaxReconnects(-1))
//	if err != nil {
//		return err
//	}
//	pieces := nats.New(conn, nil)
//	defer pieces.Close()
//	w, err := worker.New(temporal, &worker.Options{Live: pieces /* … */})
//
// Events are messages of core NATS, without a stream, each a [live.Event] as JSON. Each
// session has the subject PREFIX.SESSION. In SESSION every character other than a letter,
// digit, '-' or '_' is written as %XX. Give workers the permission to publish to
// PREFIX.>, and readers to subscribe to it.
//
// With keys, events are encrypted, and SESSION is the SHA-256 of the session's name.
// A reader of the broker sees only how much is sent and when. A writer to it cannot
// forge an event.
//
// What cannot be sent is dropped. If the sender dropped it, readers get an
// [agent.EventDeltaDropped]. What is lost on the way, as while a connection is down, is
// not counted.
package nats
