package durable

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fermata-agents/fermata/agent"
)

// keyGuard keeps a process that lacks a key from taking tasks. A task that a worker has
// taken and cannot read waits until it times out. After the first one, no poll reaches
// the server any more.
type keyGuard struct {
	once sync.Once
	shut chan struct{} // closed once bad is set
	bad  *status.Status
}

func newLatch() *keyGuard { return &keyGuard{shut: make(chan struct{})} }

func (l *keyGuard) intercept(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
	if u, ok := ctx.Value(unreadKey{}).(*Unread); ok {
		u.latch = l
	}
	polls := strings.HasSuffix(method, "/PollWorkflowTaskQueue") || strings.HasSuffix(method, "/PollActivityTaskQueue")
	if bad := l.err(); polls && bad != nil {
		return bad
	}
	err := call(ctx, method, in, out, conn, o...)
	var unread *agent.Error
	if !errors.As(err, &unread) {
		return err
	}
	// The SDK does not retry an invalid argument.
	bad := status.New(codes.InvalidArgument, unread.Message)
	if polls {
		l.once.Do(func() {
			l.bad = bad
			close(l.shut)
		})
	}
	return bad.Err()
}

// err returns why polls are stopped; nil if they are not.
func (l *keyGuard) err() error {
	select {
	case <-l.shut:
		return l.bad.Err()
	default:
		return nil
	}
}

// Unread tells when a connection has stopped polling, because its process was given a
// task that it cannot decrypt. The zero value belongs to no connection; see
// [Unread.Asking].
type Unread struct{ latch *keyGuard }

type unreadKey struct{}

// UnreadFor is how long a worker that has stopped polling continues with what it has. It is
// long on purpose: a worker that is restarted at once takes another task each time. Tests
// make it short.
var UnreadFor = 2 * time.Minute

// Asking returns a context that makes one call to the server connect u to the call's
// connection. A connection without [Codec.Interceptors] does not connect it.
func (u *Unread) Asking(ctx context.Context) context.Context {
	return context.WithValue(ctx, unreadKey{}, u)
}

// Wait returns [agent.CodeNotSetUp], with the key that is missing, when the connection
// has stopped polling. It returns nil if the context ends first.
func (u *Unread) Wait(ctx context.Context) error {
	var shut chan struct{} // a nil channel blocks
	if u.latch != nil {
		shut = u.latch.shut
	}
	select {
	case <-shut:
		return agent.Errorf(agent.CodeNotSetUp, "%s", u.latch.bad.Message())
	case <-ctx.Done():
		return nil
	}
}
