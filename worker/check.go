package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/internal/durable"
	"github.com/fermata-agents/fermata/store"
)

// busyFor is how long a starting worker waits for a busy server.
const busyFor = 2 * time.Minute

// check checks what a worker needs before it takes work. It refuses what could do harm,
// and warns of what it could not check. Thousands of workers may start at once, and a
// namespace allows ten listings a second. So it lists nothing, unless the worker is the
// first on its task queue.
func (w *Worker) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, busyFor)
	defer cancel()
	// checkStore comes first: its call to the server connects w.unread.
	for _, look := range []func(context.Context) error{w.checkStore, w.checkKeys, w.checkIdentity} {
		if err := w.patiently(ctx, look); err != nil {
			return err
		}
	}
	return w.checkAttributes(ctx)
}

// patiently repeats a check while the server does not answer in time, and logs that.
func (w *Worker) patiently(ctx context.Context, look func(context.Context) error) error {
	for {
		err := look(ctx)
		if !errors.Is(err, agent.CodeTimeout) || ctx.Err() != nil {
			return err
		}
		w.logger.Info("the server is too busy to be looked at; looking again", zap.Error(err))
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

// again is how long a worker waits between two attempts.
const again = time.Second

// checkStore refuses a store that another worker could not read.
func (w *Worker) checkStore(ctx context.Context) error {
	var server peer.Peer
	_, err := w.temporal.WorkflowService().GetSystemInfo(w.unread.Asking(ctx), &workflowservice.GetSystemInfoRequest{}, grpc.Peer(&server))
	if err != nil {
		return durable.FromRPC(err)
	}
	kept := w.store
	if e, ok := kept.(*store.Encrypted); ok {
		kept = e.Inner()
	}
	dir, ok := kept.(*store.Dir)
	if !ok || dir.Shared() || server.Addr == nil || loopback(server.Addr.String()) {
		return nil
	}
	return agent.Errorf(agent.CodeNotSetUp, "the store in %s is on this machine, and Temporal is at %s: a worker elsewhere could not read the transcripts. Open the store as shared (store.DirOptions, --store-shared) if every worker sees this folder, or use another store", dir.Root(), server.Addr)
}

// checkIdentity refuses a store other than the task queue's. A store that does not answer
// does not stop the worker: it is checked again when runs begin.
func (w *Worker) checkIdentity(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeFor)
	defer cancel()
	err := w.identity.Check(ctx)
	if errors.Is(err, agent.CodeStoreUnavailable) {
		w.logger.Warn("the store does not say which one it is: runs wait until it does", zap.Error(err), zap.String("do", "fermata doctor"))
		return nil
	}
	return err
}

func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true // a pipe or a socket file
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// attributesFor is how long a worker waits for the answer whether its namespace has the
// search attributes.
const attributesFor = 5 * time.Second

// checkAttributes refuses a namespace that lacks a search attribute: the first run would
// hang until somebody adds it. The workflow for holds sets all of them, so if it starts,
// none is missing. Only otherwise a listing tells. A server that does not say does not
// stop the worker: nothing would be lost.
func (w *Worker) checkAttributes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, attributesFor)
	defer cancel()
	if w.holds != nil && w.holds.open(ctx, w.holds.process) == nil {
		return nil
	}
	missing, err := MissingAttributes(ctx, w.temporal)
	switch {
	case errors.Is(err, agent.CodeNotSetUp):
		return err
	case err != nil:
		w.logger.Warn("it could not be seen whether the namespace has Fermata's search attributes: if it lacks one, runs wait until it is added", zap.String("do", "fermata setup"), zap.Error(err))
	case len(missing) > 0:
		return agent.Errorf(agent.CodeNotSetUp, "the namespace lacks the search attributes %s: run fermata setup, once a namespace", strings.Join(missing, ", "))
	}
	return nil
}

// storeFor is how long a starting worker waits for its store.
const storeFor = 10 * time.Second

// keyHeads is how many heads of the store are tried for a key that fits, and how many
// chunks if none does. Some may be damaged.
const keyHeads = 5

// checkKeys refuses a store that this process cannot decrypt. Runs need no such check: a
// worker that cannot decrypt a task stops polling, and no run fails. A store that does
// not answer does not stop the worker: runs wait and lose nothing.
func (w *Worker) checkKeys(ctx context.Context) error {
	if w.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeFor)
	defer cancel()
	switch err := CheckStoreKeys(ctx, w.store); {
	case errors.Is(err, agent.CodeStoreUnavailable):
		w.logger.Warn("the store does not answer: runs wait until it does", zap.Error(err), zap.String("do", "fermata doctor"))
	case errors.Is(err, agent.CodeChunkDamaged) && !errors.Is(err, agent.CodeNotSetUp):
		w.logger.Warn("heads of sessions are damaged: their runs can't continue", zap.Error(err), zap.String("do", "fermata store check"))
	default:
		return err
	}
	return nil
}

// CheckStoreKeys returns [agent.CodeNotSetUp] if the process can decrypt none of the
// first heads and chunks of a store. A worker refuses such a store, since others could
// not read what it writes. Other errors stop no worker: [agent.CodeChunkDamaged] if heads
// are damaged, and [agent.CodeStoreUnavailable].
func CheckStoreKeys(ctx context.Context, s store.Store) (bad error) {
	looked := 0
	var damage error
	e, encrypted := s.(*store.Encrypted)
	for _, err := range store.NewLog(s).Store().Heads(ctx, "") {
		switch {
		case errors.Is(err, agent.CodeNotSetUp), errors.Is(err, agent.CodeStoreUnavailable):
			return err
		case !encrypted || !errors.Is(err, agent.CodeChunkDamaged):
			return nil // it can be read, or the answer is unknown
		}
		damage, bad = err, agent.Errorf(agent.CodeNotSetUp, "this process can read nothing in the store: give it the keys of the store's other workers (FERMATA_ENCRYPTION_KEYS): %w", err)
		if looked++; looked == keyHeads {
			break
		}
	}
	if bad != nil && e.Decrypts(ctx, keyHeads) {
		return damage
	}
	return bad
}

// MissingAttributes returns the search attributes that the client's namespace lacks or
// has with another type. It uses a listing, since not every server shows its attributes
// to workers. It makes one request if nothing is missing: a server allows ten listings a
// second by default.
func MissingAttributes(ctx context.Context, c client.Client) (missing []string, err error) {
	var all []string
	for _, a := range agent.Attributes() {
		all = append(all, a.Name+comparisons[a.Type])
	}
	known, err := knows(ctx, c, strings.Join(all, " AND "))
	if known || err != nil {
		return nil, err
	}
	for i, a := range agent.Attributes() {
		switch known, err := knows(ctx, c, all[i]); {
		case err != nil:
			return nil, err
		case !known:
			missing = append(missing, a.Name)
		}
	}
	return missing, nil
}

// knows reports whether a namespace has all attributes that a query names.
func knows(ctx context.Context, c client.Client, query string) (bool, error) {
	_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: query})
	var unknown *serviceerror.InvalidArgument
	if errors.As(err, &unknown) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for search attributes: %w", durable.FromRPC(err))
	}
	return true, nil
}

// comparisons are conditions that only an attribute of the type accepts.
var comparisons = map[agent.AttributeType]string{
	agent.AttributeKeyword: " = 'none'", agent.AttributeKeywordList: " = 'none'", agent.AttributeDatetime: " < '1970-01-02T00:00:00Z'",
}
