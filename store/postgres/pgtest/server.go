package pgtest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Variable is the environment variable with the URL of a running server to use instead.
// Start then creates a database on it, and Stop drops that.
const Variable = "FERMATA_POSTGRES_URL"

// ErrMissing is the error of [Start] if PostgreSQL is not installed.
var ErrMissing = errors.New("the programs of PostgreSQL are not on this machine: apt-get install postgresql, or name a server in " + Variable)

// Server is a PostgreSQL server for tests.
type Server struct {
	url   string
	dir   string
	life  io.Closer  // the server ends when this is closed, and with this process
	ended chan error // receives once how its process ended
	admin string     // the URL of a running server on which the database was made
	name  string     // the name of that database
	// password is the server's password for its port; empty if it has no port.
	password string
	output   bytes.Buffer
}

// Start starts a server with an empty database that only this process's user can reach:
// it listens on a socket in its own folder. It does not sync its files, so it is fast,
// and a crash of the machine loses its data. If [Variable] is set, Start uses that
// server. The caller calls Stop.
func Start(ctx context.Context) (*Server, error) {
	if at := os.Getenv(Variable); at != "" {
		return create(ctx, at)
	}
	return begin(ctx, 0)
}

// StartTCP starts a server like [Start] that also listens on a loopback port, for
// programs that can't use sockets. That port needs the password in its URL. It ignores
// [Variable].
func StartTCP(ctx context.Context) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return nil, err
	}
	return begin(ctx, port)
}

// begin starts a server, on a loopback port if port is not zero.
func begin(ctx context.Context, port int) (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pg") // short, because the name of a socket has at most 107 bytes
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, ended: make(chan error, 1), url: (&url.URL{
		Scheme: "postgres", User: url.User("fermata"), Path: "/postgres", RawQuery: url.Values{"host": {dir}}.Encode(),
	}).String()}
	listen := ""
	if port != 0 {
		listen, s.password = "127.0.0.1", rand.Text()
		s.url = (&url.URL{
			Scheme: "postgres", User: url.UserPassword("fermata", s.password), Host: net.JoinHostPort(listen, strconv.Itoa(port)), Path: "/postgres",
			RawQuery: url.Values{"sslmode": {"disable"}}.Encode(),
		}).String()
	}
	if err := s.start(ctx, bin, "-c", "listen_addresses="+listen, "-p", strconv.Itoa(cmp.Or(port, 5432))); err != nil {
		s.Stop()
		return nil, fmt.Errorf("starting PostgreSQL of %s: %w\n%s", bin, err, &s.output)
	}
	return s, nil
}

// create creates a database on a running server.
func create(ctx context.Context, admin string) (*Server, error) {
	u, err := url.Parse(admin)
	if err != nil {
		return nil, errors.New(Variable + " is no URL") // the error itself might contain a password
	}
	s := &Server{admin: admin, name: "fermata_test_" + strings.ToLower(rand.Text())}
	u.Path = "/" + s.name
	s.url = u.String()
	return s, s.administer(ctx, "CREATE DATABASE "+s.name)
}

func (s *Server) administer(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}

// programs returns the folder of the newest PostgreSQL's programs.
func programs() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has them
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(b, a)) })
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		return "", ErrMissing
	}
	return filepath.Dir(found[0]), nil
}

func (s *Server) start(ctx context.Context, bin string, at ...string) error {
	who, err := s.owner()
	if err != nil {
		return err
	}
	data, secret := filepath.Join(s.dir, "data"), filepath.Join(s.dir, "password")
	if err := os.WriteFile(secret, []byte(cmp.Or(s.password, rand.Text())), 0o644); err != nil { // only the owner can open its folder
		return err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "fermata", "-E", "UTF8", "--no-locale", "--no-sync",
		"--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile="+secret)
	initdb.Dir, initdb.SysProcAttr, initdb.Stdout, initdb.Stderr = s.dir, who, &s.output, &s.output
	if err := initdb.Run(); err != nil {
		return err
	}
	// The shell ends the server when its input is closed, also when this process is
	// killed.
	server := exec.Command("sh", slices.Concat([]string{"-c", `"$@" & read -r _; kill -INT $!; wait $!`, "sh", filepath.Join(bin, "postgres"), "-D", data, "-k", s.dir,
		"-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "shared_buffers=16MB"}, at)...)
	server.Dir, server.SysProcAttr, server.Stdout, server.Stderr = s.dir, who, &s.output, &s.output
	if s.life, err = server.StdinPipe(); err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	go func() { s.ended <- server.Wait() }()
	return s.answers(ctx)
}

// owner returns the user for the server, since PostgreSQL refuses to run as root.
func (s *Server) owner() (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	err = errors.Join(uidErr, gidErr, os.Chown(s.dir, int(uid), int(gid)))
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, err
}

// answers waits until the server answers.
func (s *Server) answers(ctx context.Context) error {
	const patience, again = time.Minute, 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.url)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return err
		case err := <-s.ended:
			s.ended <- err
			return errors.Join(errors.New("the server ended"), err)
		case <-time.After(again):
		}
	}
}

// URL returns the server's URL. On its socket, anybody can be any user.
func (s *Server) URL() string { return s.url }

// Stop stops a server that Start started, and removes its database.
func (s *Server) Stop() {
	if s.name != "" {
		_ = s.administer(context.Background(), "DROP DATABASE "+s.name+" WITH (FORCE)")
	}
	if s.life != nil {
		_ = s.life.Close()
		<-s.ended
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}
