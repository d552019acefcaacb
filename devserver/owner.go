package devserver

import (
	"context"
	"strings"
	"sync"

	"github.com/google/uuid"
	"go.temporal.io/server/common/primitives"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// gateKey is the metadata key with which the server's owner passes the guard.
const gateKey = "fermata-owner"

// An ownerGuard lets only the server's owner use a namespace until it is opened. Calls of
// others wait meanwhile, as for a server that is just starting.
type ownerGuard struct {
	token  string
	opened chan struct{}
	once   sync.Once
}

func newOwnerGuard(closed bool) *ownerGuard {
	g := &ownerGuard{token: uuid.NewString(), opened: make(chan struct{})}
	if !closed {
		g.open()
	}
	return g
}

func (g *ownerGuard) open() { g.once.Do(func() { close(g.opened) }) }

// guard is the server's interceptor. Calls about the server itself pass, so that others
// can see that it runs. Calls about a namespace as a whole pass too, because the server
// makes them itself when search attributes are added.
func (g *ownerGuard) guard(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	in, ok := req.(interface{ GetNamespace() string })
	if !ok || in.GetNamespace() == "" || in.GetNamespace() == primitives.SystemLocalNamespace || strings.HasSuffix(info.FullMethod, "Namespace") {
		return next(ctx, req)
	}
	if md, _ := metadata.FromIncomingContext(ctx); len(md.Get(gateKey)) > 0 && md.Get(gateKey)[0] == g.token {
		return next(ctx, req)
	}
	select {
	case <-g.opened:
		return next(ctx, req)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pass marks a connection as the owner's. For another owner's server it changes nothing.
func (g *ownerGuard) pass() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, c *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if g != nil {
			ctx = metadata.AppendToOutgoingContext(ctx, gateKey, g.token)
		}
		return invoke(ctx, method, req, reply, c, o...)
	})
}
