package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"github.com/fermata-agents/fermata/devserver"
	"github.com/fermata-agents/fermata/model"
	"github.com/fermata-agents/fermata/provider/openai"
	"github.com/fermata-agents/fermata/store"
	"github.com/fermata-agents/fermata/worker"
)

// place is what the processes need to know, as the one argument of their commands.
type place struct {
	Dir   string `json:"dir"`
	Addr  string `json:"addr"`  // the server's address
	Model string `json:"model"` // the models' server
	Store string `json:"store"` // the proxy before the store
	// Query selects the histories to replay; empty for all.
	Query string `json:"query,omitempty"`
}

const queue = "chaos"

func (p place) store() (*store.Dir, error) { return store.OpenDir(filepath.Join(p.Dir, "store"), nil) }
func (p place) desk() *desk                { return &desk{filepath.Join(p.Dir, "desk")} }

// remote returns the store behind the proxy.
func (p place) remote() (*remote, error) {
	st, err := p.store()
	return &remote{Store: st, url: p.Store}, err
}

// dial connects to the server, without the SDK's log.
func (p place) dial() (temporal.Client, error) {
	return temporal.Dial(temporal.Options{HostPort: p.Addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
}

// options returns a worker's options.
func (p place) options(logger *zap.Logger) (*worker.Options, error) {
	st, err := p.remote()
	if err != nil {
		return nil, err
	}
	return &worker.Options{
		TaskQueue: queue, Agents: definitions(), Tools: p.desk().tools(), Flows: p.desk().flows(), Store: st, Logger: logger,
		Temporal: func(_ worker.Lane, o *sdk.Options) { o.WorkerStopTimeout = time.Second },
		Models:   map[string]model.Model{"standin": openai.New(&openai.Options{Name: "standin", BaseURL: p.Model + "/v1", APIKey: "none"})},
	}, nil
}

// serve is the server's process.
func serve(ctx context.Context, arg string) error {
	var p place
	if err := json.Unmarshal([]byte(arg), &p); err != nil {
		return err
	}
	sdk.SetBinaryChecksum("chaos") // otherwise the SDK hashes the program's file
	s, err := devserver.Start(ctx, &devserver.Options{DataDir: filepath.Join(p.Dir, "server"), Addr: p.Addr})
	if err != nil {
		return err
	}
	defer s.Stop()
	return waitForExit()
}

// work is a worker's process.
func work(ctx context.Context, arg string) error {
	var p place
	if err := json.Unmarshal([]byte(arg), &p); err != nil {
		return err
	}
	sdk.SetBinaryChecksum("chaos")
	c, err := p.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	logger, err := zap.NewProduction()
	if err != nil {
		return err
	}
	o, err := p.options(logger)
	if err != nil {
		return err
	}
	w, err := worker.New(c, o)
	if err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	defer w.Stop()
	return waitForExit()
}

// waitForExit says that the process is ready, and waits for the end of its standard
// input. That ends at the latest with the process that started this one.
func waitForExit() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// proc is another process.
type proc struct {
	*exec.Cmd
	in   io.Closer
	gone chan struct{} // closed when it has ended
}

// errEarly is the error of a process that ended before it was ready.
var errEarly = errors.New("it ended before it was ready")

// start starts a process of a build and waits until it is ready. Its error output goes to
// a file.
func (p place) start(build, command, name string) (*proc, error) {
	arg, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	says, err := os.OpenFile(filepath.Join(p.Dir, name+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer says.Close()
	c := &proc{Cmd: exec.Command(build, command, string(arg)), gone: make(chan struct{})}
	c.Stderr = says
	if c.in, err = c.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	line, _ := bufio.NewReader(out).ReadString('\n') // the line says how it ended
	go func() {
		_ = c.Wait() // in any way
		close(c.gone)
	}()
	// The pipe ended before the line, so the process has ended or is about to.
	if line != "ready\n" {
		<-c.gone
		return nil, fmt.Errorf("%s: %w, see %s", name, errEarly, says.Name())
	}
	return c, nil
}

// kill ends the process at once.
func (c *proc) kill() { // it may be gone already
	_ = c.Process.Kill() // it may be gone already
	<-c.gone
}

// dismiss asks the process to end, and kills it if it does not.
func (c *proc) dismiss() {
	_ = c.in.Close()
	select {
	case <-c.gone:
	case <-time.After(10 * time.Second):
		c.kill()
	}
}

func (c *proc) ended() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

func loopback(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }

// freeAddr returns a free address, for the server with all its restarts.
func freeAddr() (string, error) {
	l, err := loopback("127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
