package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fermata-agents/fermata/agent"
	"github.com/fermata-agents/fermata/callback"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/connect"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
)

// callbackFlags are the flags of callback.
type callbackFlags struct {
	listen, sender        string
	tokenFile, secretFile string
	open                  bool // takes callbacks from anybody
	hosts                 []string
	cert, key             string
	proxied               bool // a proxy ends TLS
}

func (c *cli) callbackCommand() *cobra.Command {
	var o callbackFlags
	cmd := &cobra.Command{
		Use:   "callback",
		Short: "Let other systems wake runs by HTTP",
		Long: `Callback serves POST /callback/SESSION until Ctrl-C. The body, JSON, becomes the event
that the session's run waits for, or the result of its client tool. With ?topic=TOPIC
it is an event of that topic. Callbacks answer no question and approve nothing.

Senders prove themselves by a bearer token (--token-file), or by signatures of
Standard Webhooks (--secret-file). A file may have several lines: each counts.

An address that other machines reach needs --host, and either --tls-cert and --tls-key
or, behind a proxy that ends TLS, --tls-at-proxy.`,
		Example: `  (umask 077; openssl rand -hex 32 > callback.token)
  fermata callback --listen 127.0.0.1:7280 --token-file callback.token
  curl -H "Authorization: Bearer $(cat callback.token)" -H "Content-Type: application/json" \
    -d '{"order":118}' http://127.0.0.1:7280/callback/invoice-118`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.callback(cmd.Context(), &o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:7280", "address to listen on")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the bearer tokens that are accepted")
	f.StringVar(&o.secretFile, "secret-file", "", "file with the secrets that sign webhooks: base64, with or without whsec_")
	f.BoolVar(&o.open, "allow-unauthenticated", false, "take callbacks from everybody on this machine")
	f.StringVar(&o.sender, "sender", "webhook", "name of the sender, recorded as callback:NAME")
	f.StringSliceVar(&o.hosts, "host", nil, "HOST or HOST:PORT in the URLs that senders use; can be repeated")
	f.StringVar(&o.cert, "tls-cert", "", "file with the certificate, PEM")
	f.StringVar(&o.key, "tls-key", "", "file with the certificate's key, PEM")
	f.BoolVar(&o.proxied, "tls-at-proxy", false, "a proxy in front ends TLS")
	c.jsonFlag(cmd, "print the address as one line of JSON")
	return cmd
}

// check refuses flags that would let others in.
func (o *callbackFlags) check() error {
	given := 0
	for _, one := range []bool{o.tokenFile != "", o.secretFile != "", o.open} {
		if one {
			given++
		}
	}
	// Whether the address is loopback decides what else it needs.
	far := checkLoopback("--listen", o.listen)
	switch {
	case given == 0:
		return agent.Errorf(agent.CodeInvalidInput, "callback needs to know who sends: --token-file FILE or --secret-file FILE. On this machine alone, --allow-unauthenticated lets everybody wake runs")
	case given > 1:
		return agent.Errorf(agent.CodeInvalidInput, "--token-file, --secret-file and --allow-unauthenticated exclude each other")
	case (o.cert == "") != (o.key == ""):
		return agent.Errorf(agent.CodeInvalidInput, "--tls-cert and --tls-key need each other")
	case o.cert != "" && o.proxied:
		return agent.Errorf(agent.CodeInvalidInput, "--tls-at-proxy and --tls-cert exclude each other: TLS ends in one place")
	case o.open && (far != nil || o.proxied || len(o.hosts) > 0):
		return agent.Errorf(agent.CodeInvalidInput, "--allow-unauthenticated is for loopback alone: without it, use --token-file or --secret-file")
	case far == nil && o.listen != "":
		return nil
	}
	if _, _, err := net.SplitHostPort(o.listen); err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "--listen needs HOST:PORT, not %q", o.listen)
	}
	switch {
	case o.cert == "" && !o.proxied:
		return agent.Errorf(agent.CodeInvalidInput, "other machines reach %s, and would send secrets in plain text: set --tls-cert and --tls-key, or --tls-at-proxy if a proxy in front ends TLS", o.listen)
	case len(o.hosts) == 0:
		return agent.Errorf(agent.CodeInvalidInput, "other machines reach %s: name the hosts in the URLs that senders use with --host", o.listen)
	}
	return nil
}

// options returns the options of the handler.
func (o *callbackFlags) options() (*callback.Options, error) {
	with := &callback.Options{AllowUnauthenticated: o.open, Hosts: o.hosts}
	flag, file, prove := "--token-file", o.tokenFile, callback.Bearer
	if o.secretFile != "" {
		flag, file, prove = "--secret-file", o.secretFile, callback.Signed
	}
	if file == "" {
		return with, nil
	}
	text, err := secret.File(flag, file)
	if err != nil {
		return nil, err
	}
	if with.Authenticate, err = prove(o.sender, strings.Fields(text)...); err != nil {
		return nil, fmt.Errorf("%s %s: %w", flag, file, err)
	}
	return with, nil
}

func (c *cli) callback(ctx context.Context, o *callbackFlags) error {
	if err := o.check(); err != nil {
		return err
	}
	with, err := o.options()
	if err != nil {
		return err
	}
	with.Logger = c.Log.Slog()
	var certs *tls.Config
	scheme := "http"
	if o.cert != "" {
		pair, err := tls.LoadX509KeyPair(o.cert, o.key)
		if err != nil {
			return agent.Errorf(agent.CodeInvalidInput, "the certificate can't be used: %w", err)
		}
		scheme, certs = "https", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	return c.WithServer(ctx, func(_ *connect.Server, runs *fermata.Client) error {
		h, err := callback.New(runs, with)
		if err != nil {
			return err
		}
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
		if err != nil {
			return agent.Errorf(agent.CodeInvalidInput, "the endpoint of callbacks does not start: %w", err)
		}
		at := fmt.Sprintf("%s://%s%s", scheme, listener.Addr(), callback.Prefix)
		if certs != nil {
			listener = tls.NewListener(listener, certs)
		}
		if c.JSON {
			c.Line(callbackLine{agent.Version, "ready", at})
		} else {
			c.Print("callback   %sSESSION", at)
			c.Print("ready      Ctrl-C stops")
		}
		return serveCallbacks(ctx, listener, h)
	})
}

// callbackLine is the output of callback --json.
type callbackLine struct {
	V    int    `json:"v"`
	Type string `json:"type"`
	URL  string `json:"url"`
}

// callbackGrace is how long callbacks in progress have at the end.
const callbackGrace = 5 * time.Second

// serveCallbacks serves until the context ends. Callbacks in progress are answered.
func serveCallbacks(ctx context.Context, l net.Listener, h http.Handler) error {
	// Its own log would write to standard error about every scanner that comes by.
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), callbackGrace)
		defer cancel()
		if server.Shutdown(short) != nil {
			server.Close()
		}
	})
	err := server.Serve(l)
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return agent.Errorf(agent.CodeInternal, "the endpoint of callbacks has stopped: %w", err)
	}
	<-ended
	return nil
}
