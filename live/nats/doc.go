// Package nats carries live events over NATS, from the workers of one process to
// the readers of another: it is a [live.Sink] and a [live.Source].
//
//	conn, err := broker.Connect("nats://nats.acme.com", broker.MaxReconnects(-1))
//	if err != nil {
//		return err
//	}
//	pieces := nats.New(conn, nil)
//	defer pieces.Close()
//	w, err := worker.New(temporal, &worker.Options{Live: pieces /* … */})
//
// Events are messages of core NATS, with no stream behind them, each in the form of
// [live.Event] as JSON. A session has a subject of its own, PREFIX.SESSION, where
// what is no letter, digit, '-' or '_' of its name is %XX. Permissions go by that:
// workers publish to PREFIX.>, and readers subscribe to it.
//
// With keys, events are encrypted, and SESSION is the SHA-256 of the session's name:
// who can read the broker learns how much is said and when, and no more; who can
// write to it can make nobody believe anything.
//
// What can't be sent is dropped, and so is what nobody hears. Where it was the sender
// that dropped it, readers are told by an [agent.EventDeltaDropped]; what is lost between, as
// while a connection is away, nobody counts.
package nats
