package store

import (
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/remembered"
)

// maxBlobs is the most blobs that hold a backlog's events: a reader has to read all of
// them.
const maxBlobs = 16

// PutBacklog stores new events of a backlog after those that are stored already, and
// returns the blobs of all of them. Only a head of the session may name these blobs. So
// each event is written once, when it arrives, and not with every head until it is done.
// Errors are those of [Log.Backlog].
func (l *Log) PutBacklog(ctx context.Context, session string, kept []remembered.BacklogBlob, events []agent.EmitCommand) ([]remembered.BacklogBlob, error) {
	if len(events) == 0 {
		return kept, nil
	}
	// Merged into one blob, so that a reader never has more than maxBlobs to read.
	if len(kept) >= maxBlobs {
		before, err := l.keptEvents(ctx, kept)
		if err != nil {
			return nil, err
		}
		kept, events = nil, append(before, events...)
	}
	data, err := json.Marshal(events)
	if err != nil {
		return nil, agent.Errorf(agent.CodeInternal, "encoding the inbox of session %s: %w", session, err)
	}
	name, err := l.PutBlob(ctx, session, data)
	if err != nil {
		return nil, err
	}
	last := remembered.BacklogBlob{Blob: name}
	for _, e := range events {
		last.Keys = append(last.Keys, remembered.EventKey(e))
	}
	// A copy: the caller's list belongs to a head that may be in use.
	return append(kept[:len(kept):len(kept)], last), nil
}

// Backlog returns what a session's runs have left for the next one. Errors are
// [agent.CodeChunkMissing], [agent.CodeChunkDamaged] and those of the store.
func (l *Log) Backlog(ctx context.Context, h Head) (remembered.Backlog, error) {
	events, err := l.keptEvents(ctx, h.BacklogBlobs)
	if err != nil || len(events) == 0 {
		return h.Backlog, err
	}
	return remembered.Backlog{Unfinished: h.Backlog.Unfinished, Events: append(events, h.Backlog.Events...)}, nil
}

// keptEvents reads the events of blobs.
func (l *Log) keptEvents(ctx context.Context, kept []remembered.BacklogBlob) ([]agent.EmitCommand, error) {
	if len(kept) > maxBlobs {
		return nil, agent.Errorf(agent.CodeChunkDamaged, "an inbox has %d blobs; at most %d are read", len(kept), maxBlobs)
	}
	var size atomic.Int64
	parts, err := each(ctx, kept, func(ctx context.Context, k remembered.BacklogBlob) ([]agent.EmitCommand, error) {
		plain, err := l.Blob(ctx, k.Blob)
		if err != nil {
			return nil, err
		}
		if size.Add(int64(len(plain))) > maxPlain {
			return nil, agent.Errorf(agent.CodeChunkDamaged, "the events of an inbox have more than %d bytes", maxPlain)
		}
		return eventsOf(k, plain)
	})
	return slices.Concat(parts...), err
}

// eventsOf decodes the events of one blob that the head still names.
func eventsOf(k remembered.BacklogBlob, plain []byte) (events []agent.EmitCommand, err error) {
	var all []agent.EmitCommand
	if err := json.Unmarshal(plain, &all); err != nil {
		return nil, agent.Errorf(agent.CodeIncompatible, "the events of blob %s can't be read by this version: %w", k.Blob, err)
	}
	byKey := map[string]agent.EmitCommand{}
	for _, e := range all {
		byKey[remembered.EventKey(e)] = e
	}
	// In the order of the head. Events that it no longer names are done.
	for _, key := range k.Keys {
		e, ok := byKey[key]
		if !ok {
			return nil, agent.Errorf(agent.CodeChunkDamaged, "blob %s does not have the event %s that the head names", k.Blob, key)
		}
		events = append(events, e)
	}
	return events, nil
}
