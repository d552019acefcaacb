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

// busyFor is how long a worker that starts waits for a server that is too busy to be
// looked at.
const busyFor = 2 * time.Minute

// check looks at what a worker needs before it takes work. Thousands may start at once,
// and a namespace allows ten listings a second: so it lists nothing, unless it is the
// first on its task queue. It refuses what could do harm, and warns of what it could not
// look at.
func (w *Worker) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, busyFor)
	defer cancel()
	for _, look := range []func(context.Context) error{w.checkStore, w.checkKeys, w.checkIdentity} {
		if err := w.patiently(ctx, look); err != nil {
			return err
		}
	}
	return w.checkAttributes(ctx)
}

// patiently looks again where the server did not answer in time, and says so.
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

// again is how long a worker waits between two looks.
const again = time.Second

// checkStore refuses transcripts that another worker could not read.
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

// checkIdentity refuses another store than that of the task queue's other workers. A store
// that does not answer is no reason not to start: it is looked at again when runs begin.
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

// attributesFor is how long a worker waits for a listing that reports whether its namespace
// has the search attributes.
const attributesFor = 5 * time.Second

// checkAttributes refuses a namespace that lacks a search attribute: the first run would
// hang there until somebody adds it. The workflow by which others tell this process of
// holds carries all of them, so that it can't be started there; only where that is not
// said, a listing tells. A server that does not say is no reason not to start: nothing
// would be lost.
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

// storeFor is how long a worker that starts waits for its store.
const storeFor = 10 * time.Second

// keyHeads is how many heads of the store are looked at for a key that fits, and how many
// chunks if none does: some may be damaged.
const keyHeads = 5

// checkKeys refuses a store that this process can't decrypt. Runs need no listing for that:
// one that can't be decrypted tells with its first task, after which the worker takes no
// more, and no run fails for it. A store that does not answer is no reason not to start:
// its runs wait until it does, and lose nothing.
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
		w.logger.Warn("heads of sessions are damaged: their runs can't go on", zap.Error(err), zap.String("do", "fermata store check"))
	default:
		return err
	}
	return nil
}

// CheckStoreKeys returns the error [agent.CodeNotSetUp] with which a worker refuses a store that it
// can't decrypt, since others could not read what it would write: of the first heads and
// chunks, none can be read. Other errors stop no worker: [agent.CodeChunkDamaged] if heads are
// damaged, and [agent.CodeStoreUnavailable].
func CheckStoreKeys(ctx context.Context, s store.Store) (bad error) {
	looked := 0
	var damage error
	e, encrypted := s.(*store.Encrypted)
	for _, err := range store.NewLog(s).Store().Heads(ctx, "") {
		switch {
		case errors.Is(err, agent.CodeNotSetUp), errors.Is(err, agent.CodeStoreUnavailable):
			return err
		case !encrypted || !errors.Is(err, agent.CodeChunkDamaged):
			return nil // it can be read, or nobody knows
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

// MissingAttributes lists the search attributes that the client's namespace
// lacks, or has with another type. It asks as any reader would, since not every
// server shows its attributes to workers; and once where nothing is missing, since a
// server allows ten listings a second by default.
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

// knows reports whether a namespace has all that a query names.
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

// comparisons are queries that only an attribute of the type stands.
var comparisons = map[agent.AttributeType]string{
	agent.AttributeKeyword: " = 'none'", agent.AttributeKeywordList: " = 'none'", agent.AttributeDatetime: " < '1970-01-02T00:00:00Z'",
}
