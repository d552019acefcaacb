package devserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	otelsdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
	"go.uber.org/fx"
)

const (
	clusterName = "active"
	storeName   = "sqlite"
)

// bootAttempts is how often starting is tried if another process takes a port after it
// was chosen.
const bootAttempts = 5

// The server's four services, each with its own port. They use gRPC between each other
// even within one process.
var services = []primitives.ServiceName{
	primitives.FrontendService,
	primitives.HistoryService,
	primitives.MatchingService,
	primitives.WorkerService,
}

// nexusPort stands among the services for the frontend's HTTP port. The server calls
// Nexus operations by it.
const nexusPort primitives.ServiceName = "nexus"

// An instance is the server itself: its services, and their connections.
type instance struct {
	services *temporal.ServerImpl
	app      *temporal.ServerFx
	conns    *connections
}

// boot starts the server on the database. It returns the address of the frontend.
func boot(addr *net.TCPAddr, db *database, o *Options, log *serverLog, g *ownerGuard) (*instance, string, error) {
	for attempt := 1; ; attempt++ {
		ports, err := choosePorts(addr)
		if err != nil {
			return nil, "", err
		}
		i, err := launch(serverConfig(ports, db, o), o, log, g)
		if err == nil {
			return i, ports[primitives.FrontendService].String(), nil
		}
		if attempt == bootAttempts || !isListenError(err) {
			return nil, "", fmt.Errorf("devserver: start the server: %w", err)
		}
		log.reset()
	}
}

// choosePorts finds a free port for each service. The server needs port numbers and
// listens by itself, so another process can take a port in between. boot then tries
// again.
func choosePorts(frontend *net.TCPAddr) (map[primitives.ServiceName]*net.TCPAddr, error) {
	ports := make(map[primitives.ServiceName]*net.TCPAddr, len(services))
	for _, s := range append(slices.Clone(services), nexusPort) {
		want := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
		if s == primitives.FrontendService {
			want = frontend
		}
		l, err := net.ListenTCP("tcp", want)
		if err != nil {
			return nil, fmt.Errorf("devserver: cannot listen on %v: %w", want, err)
		}
		// All are held until all are chosen, so that they differ.
		defer l.Close()
		ports[s] = l.Addr().(*net.TCPAddr)
	}
	return ports, nil
}

// isListenError reports whether a port was not available.
func isListenError(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "listen"
}

// launch builds the server and starts it in its own goroutine. Where the server would
// exit the process, serverLog ends that goroutine instead.
func launch(cfg *config.Config, o *Options, log *serverLog, g *ownerGuard) (*instance, error) {
	i := &instance{conns: newConnections()}
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			// If the goroutine ends inside one of the server's sync.Once, that becomes a
			// panic. Its cause is then the log's fault.
			if p := recover(); p != nil && log.fault() == nil {
				err = fmt.Errorf("panic: %v", p)
			}
		}()
		i.app, err = temporal.NewServerFx(serverModule(&i.services),
			temporal.WithConfig(cfg),
			temporal.ForServices(temporal.DefaultServices),
			temporal.WithStaticHosts(staticHosts(cfg)),
			temporal.WithLogger(log),
			temporal.WithDynamicConfigClient(o.settings()),
			temporal.WithCustomMetricsHandler(o.metrics()),
			temporal.WithClientFactoryProvider(i.conns),
			temporal.WithChainedFrontendGrpcInterceptors(g.guard),
		)
		if err == nil {
			err = i.app.Start()
		}
	}()
	<-done
	if fault := log.fault(); fault != nil {
		err = fault
	}
	if err == nil {
		return i, nil
	}
	if i.services != nil {
		// A start that fails half-way leaves some services running.
		_ = i.services.Stop(context.Background())
	}
	i.conns.close()
	return nil, err
}

// stop ends the services and closes what they leave open.
func (i *instance) stop() error {
	err := i.app.Stop()
	i.conns.close()
	return err
}

// serverModule is the server's own, without its trace exporters. They read the
// environment: OTEL_TRACES_EXPORTER, set for an agent, would export the server's traces
// too. They also replace the process's handler of OpenTelemetry errors.
func serverModule(impl **temporal.ServerImpl) fx.Option {
	return fx.Options(
		temporal.TopLevelModule,
		fx.Replace([]otelsdktrace.SpanExporter{}),
		fx.Populate(impl),
	)
}

// serverConfig is the server's static configuration. What it does not set is off:
// no HTTP port without Options.Nexus, no profiler, no metrics, no archival, no TLS, no
// membership ports.
func serverConfig(ports map[primitives.ServiceName]*net.TCPAddr, db *database, o *Options) *config.Config {
	frontend := ports[primitives.FrontendService].String()
	cfg := &config.Config{
		Services: make(map[string]config.Service, len(ports)),
		Persistence: config.Persistence{
			DefaultStore:     storeName,
			VisibilityStore:  storeName,
			NumHistoryShards: 1, // they share one connection: more only cost memory
			DataStores:       map[string]config.DataStore{storeName: {SQL: &db.cfg}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: frontend},
	}
	// Hosts are static, see staticHosts, but the server checks these anyway.
	cfg.Global.Membership.MaxJoinDuration = 30 * time.Second
	cfg.Global.Membership.BroadcastAddress = "127.0.0.1"
	cfg.Archival.History.State = config.ArchivalDisabled
	cfg.Archival.Visibility.State = config.ArchivalDisabled
	cfg.NamespaceDefaults.Archival.History.State = config.ArchivalDisabled
	cfg.NamespaceDefaults.Archival.Visibility.State = config.ArchivalDisabled
	for _, s := range services {
		rpc := config.RPC{GRPCPort: ports[s].Port, BindOnIP: ports[s].IP.String()}
		if s == primitives.FrontendService && o.nexus() {
			rpc.HTTPPort = ports[nexusPort].Port
		}
		cfg.Services[string(s)] = config.Service{RPC: rpc}
	}
	return cfg
}

// staticHosts says where the services are. The alternative, gossip between hosts, would
// need four more ports and a second or two to settle.
func staticHosts(cfg *config.Config) map[primitives.ServiceName]static.Hosts {
	hosts := make(map[primitives.ServiceName]static.Hosts, len(cfg.Services))
	for name, s := range cfg.Services {
		addr := net.JoinHostPort(s.RPC.BindOnIP, strconv.Itoa(s.RPC.GRPCPort))
		hosts[primitives.ServiceName(name)] = static.SingleLocalHost(addr)
	}
	return hosts
}
