package devserver

import (
	"sync"

	serverclient "go.temporal.io/server/client"
	"go.temporal.io/server/common"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/testing/testhooks"
	"google.golang.org/grpc"
)

// connections are the gRPC connections between the server's services. The server leaves
// many of them open when it stops, each with goroutines that dial a dead port for ever.
// Here they are collected, so that they can be closed.
type connections struct {
	serverclient.FactoryProvider

	mu   sync.Mutex
	open map[*grpc.ClientConn]struct{}
}

func newConnections() *connections {
	return &connections{
		FactoryProvider: serverclient.NewFactoryProvider(),
		open:            make(map[*grpc.ClientConn]struct{}),
	}
}

// NewFactory is called once by each service.
func (c *connections) NewFactory(rpc common.RPCFactory, monitor membership.Monitor, handler metrics.Handler, dc *dynamicconfig.Collection, hooks testhooks.TestHooks, shards int32, logger, throttled log.Logger) serverclient.Factory {
	return c.FactoryProvider.NewFactory(&keepingFactory{rpc, c}, monitor, handler, dc, hooks, shards, logger, throttled)
}

func (c *connections) keep(conn *grpc.ClientConn) *grpc.ClientConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[conn] = struct{}{}
	return conn
}

// close closes all connections. A connection that is closed already is no error.
func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.open {
		_ = conn.Close()
	}
	clear(c.open)
}

// A keepingFactory collects the connections that the server's own factory makes.
type keepingFactory struct {
	common.RPCFactory
	kept *connections
}

func (f *keepingFactory) CreateRemoteFrontendGRPCConnection(addr string) *grpc.ClientConn {
	return f.kept.keep(f.RPCFactory.CreateRemoteFrontendGRPCConnection(addr))
}

func (f *keepingFactory) CreateLocalFrontendGRPCConnection() *grpc.ClientConn {
	return f.kept.keep(f.RPCFactory.CreateLocalFrontendGRPCConnection())
}

func (f *keepingFactory) CreateHistoryGRPCConnection(addr string) *grpc.ClientConn {
	return f.kept.keep(f.RPCFactory.CreateHistoryGRPCConnection(addr))
}

func (f *keepingFactory) CreateMatchingGRPCConnection(addr string) *grpc.ClientConn {
	return f.kept.keep(f.RPCFactory.CreateMatchingGRPCConnection(addr))
}
