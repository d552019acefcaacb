package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	temporal "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/fermata-agents/fermata/store/postgres/pgtest"
)

// cluster is a Temporal server and its database.
type cluster struct {
	compose  *compose
	dir      string // logs and settings
	database *pgtest.Server
	server   *exec.Cmd
	life     io.Closer     // closing it ends the server
	ended    chan struct{} // closed when the server has ended
	addr     string
}

// start starts everything. The programs' output goes to the folder.
func start(ctx context.Context, dir, file string) (_ *cluster, err error) {
	c := &cluster{dir: dir, ended: make(chan struct{})}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	if c.compose, err = readCompose(file); err != nil {
		return nil, err
	}
	if c.database, err = pgtest.StartTCP(ctx); err != nil {
		return nil, err
	}
	if err := c.schema(ctx); err != nil {
		return nil, err
	}
	if err := c.serve(ctx); err != nil {
		return nil, err
	}
	here := map[string]string{"TEMPORAL_ADDRESS": c.addr}
	if err := c.script(ctx, "namespace", here); err != nil {
		return nil, err
	}
	return c, c.run(ctx, "setup", here, "fermata", c.compose.Services["setup"].Command...)
}

// schema creates the tables, with the version's own files instead of the image's.
func (c *cluster) schema(ctx context.Context) error {
	wanted := c.compose.Services["temporal"].version()
	is, err := exec.CommandContext(ctx, "temporal-server", "--version").Output()
	if err != nil {
		return fmt.Errorf("temporal-server: %w", err)
	}
	if !strings.Contains(string(is), wanted[1:]) {
		return fmt.Errorf("temporal-server is not %s, which the file names: %s", wanted, is)
	}
	var module struct{ Dir string }
	found, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", "go.temporal.io/server@"+wanted).Output()
	if err == nil {
		err = json.Unmarshal(found, &module)
	}
	if err != nil {
		return fmt.Errorf("finding Temporal's schema: %w", err)
	}
	const image = "/etc/temporal/schema"
	schema := c.compose.Services["schema"]
	schema.Command = []string{strings.ReplaceAll(strings.Join(schema.Command, "\n"), image, filepath.Join(module.Dir, "schema"))}
	c.compose.Services["schema"] = schema
	u, err := url.Parse(c.database.URL())
	if err != nil {
		return err
	}
	password, _ := u.User.Password()
	return c.script(ctx, "schema", map[string]string{"SQL_HOST": u.Hostname(), "SQL_PORT": u.Port(), "SQL_USER": u.User.Username(), "SQL_PASSWORD": password})
}

// script runs a service's shell script.
func (c *cluster) script(ctx context.Context, name string, others map[string]string) error {
	return c.run(ctx, name, others, "sh", "-euc", c.compose.Services[name].script())
}

// run runs a program as a service.
func (c *cluster) run(ctx context.Context, name string, others map[string]string, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = c.compose.Services[name].environ(others)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// forTests is what tests need beyond the cluster's settings.
const forTests = "frontend.WorkflowTimeSkippingEnabled: [{value: true}]\n"

// serve starts the server and waits until it answers.
func (c *cluster) serve(ctx context.Context) error {
	dynamic := filepath.Join(c.dir, "dynamic.yaml")
	if err := os.WriteFile(dynamic, []byte(c.compose.Configs["dynamic"].Content+forTests), 0o600); err != nil {
		return err
	}
	env, err := c.settings()
	if err != nil {
		return err
	}
	env["DYNAMIC_CONFIG_FILE_PATH"] = dynamic
	said, err := os.Create(filepath.Join(c.dir, "temporal.log"))
	if err != nil {
		return err
	}
	defer said.Close()
	c.addr = "127.0.0.1:" + env["FRONTEND_GRPC_PORT"]
	// The shell ends the server when its input ends, so also if this process is killed.
	c.server = exec.Command("sh", "-c", `temporal-server --allow-no-auth start & read -r _; kill -KILL $!`)
	c.server.Env, c.server.Stdout, c.server.Stderr = c.compose.Services["temporal"].environ(env), said, said
	if c.life, err = c.server.StdinPipe(); err != nil {
		return err
	}
	if err := c.server.Start(); err != nil {
		return err
	}
	go func() {
		_ = c.server.Wait() // its log says how it ended
		close(c.ended)
	}()
	return c.answers(ctx)
}

// settings returns where the server's database and its ports are.
func (c *cluster) settings() (map[string]string, error) {
	u, err := url.Parse(c.database.URL())
	if err != nil {
		return nil, err
	}
	password, _ := u.User.Password()
	env := map[string]string{
		"POSTGRES_SEEDS": u.Hostname(), "DB_PORT": u.Port(), "POSTGRES_USER": u.User.Username(), "POSTGRES_PWD": password,
		"BIND_ON_IP": "127.0.0.1", "LOG_LEVEL": "warn",
	}
	var ports []string
	for _, part := range []string{"FRONTEND", "HISTORY", "MATCHING", "WORKER"} {
		ports = append(ports, part+"_GRPC_PORT", part+"_MEMBERSHIP_PORT")
	}
	for _, port := range append(ports, "FRONTEND_HTTP_PORT") {
		l, err := free()
		if err != nil {
			return nil, err
		}
		defer l.Close() // only when all are found, so that none is found twice
		env[port] = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	}
	return env, nil
}

// free finds a free port below 32768: Temporal keeps the ports of members in a smallint
// of PostgreSQL.
func free() (l net.Listener, err error) {
	const least, most, tries = 10_000, 1 << 15, 100
	for range tries {
		l, err = net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(least+rand.IntN(most-least)))
		if err == nil {
			return l, nil
		}
	}
	return nil, err
}

// answers waits until the server answers.
func (c *cluster) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		s, err := temporal.DialContext(ctx, temporal.Options{HostPort: c.addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
		if err == nil {
			s.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Temporal server does not answer at %s, see %s: %w", c.addr, c.dir, err)
		case <-c.ended:
			return errors.New("the Temporal server ended: see " + c.dir)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// stop stops everything.
func (c *cluster) stop() {
	if c.server != nil && c.server.Process != nil {
		_ = c.life.Close()
		<-c.ended
	}
	if c.database != nil {
		c.database.Stop()
	}
}
