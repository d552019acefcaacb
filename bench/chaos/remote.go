package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"os"
	"time"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/store"
)

// remote is the store as a process sees it. It reads directly, when the proxy says that
// the store does not hang, and writes through the proxy.
type remote struct {
	store.Store
	url string
}

// PutIfAbsent implements [store.Store].
func (r *remote) PutIfAbsent(ctx context.Context, key, value string) (string, error) {
	if err := r.wait(ctx); err != nil {
		return "", err
	}
	return r.Store.PutIfAbsent(ctx, key, value)
}

// Chunk implements [store.Store].
func (r *remote) Chunk(ctx context.Context, name string) ([]byte, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	return r.Store.Chunk(ctx, name)
}

// ChunkStart implements [store.Store].
func (r *remote) ChunkStart(ctx context.Context, name string, most int) ([]byte, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	return r.Store.ChunkStart(ctx, name, most)
}

// Chunks implements [store.Store].
func (r *remote) Chunks(ctx context.Context, prefix string) iter.Seq2[store.ChunkInfo, error] {
	if err := r.wait(ctx); err != nil {
		return func(yield func(store.ChunkInfo, error) bool) { yield(store.ChunkInfo{}, err) }
	}
	return r.Store.Chunks(ctx, prefix)
}

// Head implements [store.Store].
func (r *remote) Head(ctx context.Context, session string) (store.Head, error) {
	if err := r.wait(ctx); err != nil {
		return store.Head{}, err
	}
	return r.Store.Head(ctx, session)
}

// wait returns when the store does not hang.
func (r *remote) wait(ctx context.Context) error {
	_, err := r.ask(ctx, http.MethodGet, nil)
	if err != nil {
		return agent.Errorf(agent.CodeStoreUnavailable, "reading the store: %w", err)
	}
	return nil
}

// PutChunk implements [store.Store].
func (r *remote) PutChunk(ctx context.Context, name string, data []byte) error {
	_, err := r.write(ctx, &write{Op: putChunk, Name: name, Data: data})
	return err
}

// DeleteChunk implements [store.Store].
func (r *remote) DeleteChunk(ctx context.Context, name string, before time.Time) (bool, error) {
	return r.write(ctx, &write{Op: deleteChunk, Name: name, Before: before})
}

// PutHead implements [store.Store].
func (r *remote) PutHead(ctx context.Context, h store.Head) error {
	_, err := r.write(ctx, &write{Op: putHead, Head: &h})
	return err
}

// DeleteHead implements [store.Store].
func (r *remote) DeleteHead(ctx context.Context, session string, version int64) error {
	_, err := r.write(ctx, &write{Op: deleteHead, Session: session, Version: version})
	return err
}

// write sends a write to the proxy. A caller that stops waiting does not stop its write.
func (r *remote) write(ctx context.Context, w *write) (gone bool, err error) {
	w.PID = os.Getpid()
	body, err := json.Marshal(w)
	if err != nil {
		return false, agent.Errorf(agent.CodeInternal, "encoding a write: %w", err)
	}
	a, err := r.ask(ctx, http.MethodPost, body)
	switch {
	case err != nil:
		return false, agent.Errorf(agent.CodeStoreUnavailable, "asking the store's proxy to %s: %w", w.Op, err)
	case a.Code != "":
		return false, agent.Errorf(a.Code, "%s", a.Message)
	}
	return a.Gone, nil
}

func (r *remote) ask(ctx context.Context, method string, body []byte) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, method, r.url, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return a, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return a, fmt.Errorf("it says %s", res.Status)
	}
	if method == http.MethodGet {
		return a, nil
	}
	return a, json.NewDecoder(res.Body).Decode(&a)
}
