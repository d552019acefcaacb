package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/secret"
	"github.com/fermata-agents/fermata/keyring"
)

func (c *cli) codecCommand() *cobra.Command {
	listen := ""
	cmd := &cobra.Command{
		Use:   "codec",
		Short: "Run a codec server for Temporal's UI and CLI",
		Long: `Codec runs a codec server on loopback until Ctrl-C. Temporal's UI and the temporal
command use it to show payloads that are encrypted with the keys in
` + env.Encryption + ` (id:base64,…). The temporal command also encrypts
with it.

Anyone with the server's token can decrypt. The token is in ` + env.Codec + `,
or is new at each start. Send it in the URL's path or as "Authorization: Bearer".
All users of a machine see its command lines, so give the token to the temporal
command in TEMPORAL_CODEC_ENDPOINT or TEMPORAL_CODEC_AUTH.`,
		Example: `  export ` + env.Encryption + `=$(fermata codec key k1)
  fermata codec
  export TEMPORAL_CODEC_ENDPOINT=http://127.0.0.1:8234/TOKEN
  temporal workflow show -w invoice-118`,
		Args: exactArgs(0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return c.codec(cmd.Context(), listen) },
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8234", "loopback address to listen on")
	c.jsonFlag(cmd, "print the address as one line of JSON")
	cmd.AddCommand(c.codecKeyCommand())
	return cmd
}

func (c *cli) codecKeyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key ID",
		Short: "Create an encryption key",
		Long: `Key prints a new random key with an id, in the form of ` + env.Encryption + `.

To change keys, restart every process with the new key after the old one, then with
the new key first. Run fermata store rekey. Remove the old key when nothing needs it
any more (docs/encryption.md).`,
		Example: `  export ` + env.Encryption + `=$(fermata codec key k1)
  export ` + env.Encryption + `=$` + env.Encryption + `,$(fermata codec key k2)`,
		Args: exactArgs(1, "an id for the key"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := keyring.New(args[0])
			switch {
			case err != nil:
			case c.JSON:
				c.Line(keyLine{agent.Version, text})
			default:
				c.Print("%s", text)
			}
			return err
		},
	}
	c.jsonFlag(cmd, "print the key as one line of JSON")
	return cmd
}

// keyLine is the output of codec key --json.
type keyLine struct {
	V   int    `json:"v"`
	Key string `json:"key"`
}

func (c *cli) codec(ctx context.Context, addr string) error {
	ring, err := env.Keyring()
	if err == nil && ring == nil {
		err = agent.Errorf(agent.CodeNotSetUp, "there are no keys: set %s; fermata codec key makes one", env.Encryption)
	}
	if err == nil {
		// Any process that reaches the server can try tokens, so only this machine may reach it.
		err = checkLoopback("--listen", addr)
	}
	// Both errors are found before one is returned; the first counts.
	token, wrong := secret.Get(env.Codec)
	if wrong == nil && token != "" && len(token) < leastToken {
		wrong = agent.Errorf(agent.CodeInvalidInput, "%s has %d characters, and a web page in a local browser could guess it: use at least %d, or unset it to get a new token", env.Codec, len(token), leastToken)
	}
	if err = cmp.Or(err, wrong); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return agent.Errorf(agent.CodeInvalidInput, "the codec server does not start: %w", err)
	}
	token = cmp.Or(token, rand.Text())
	// Timeouts bound slow clients: any page in the browser can open connections.
	server := &http.Server{Handler: codecHandler(ring, token), ReadTimeout: time.Minute, ReadHeaderTimeout: 10 * time.Second}
	// Close, not Shutdown: a browser's open connection must not delay the end.
	context.AfterFunc(ctx, func() { server.Close() })
	if at := fmt.Sprintf("http://%s/%s", listener.Addr(), token); c.JSON {
		c.Line(codecLine{agent.Version, "ready", at, ring.IDs(), ring.Primary()})
	} else {
		c.Print("codec      %s", at)
		c.Print("keys       %s; %s writes", strings.Join(ring.IDs(), ", "), ring.Primary())
		c.Print("ready      Ctrl-C stops")
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return agent.Errorf(agent.CodeInternal, "the codec server has stopped: %w", err)
	}
	return nil
}

// codecLine is the output of codec --json.
type codecLine struct {
	V      int      `json:"v"`
	Type   string   `json:"type"`
	URL    string   `json:"url"`
	Keys   []string `json:"keys"`
	Writes string   `json:"writes"`
}

// leastToken is the minimum length of the codec server's token, in characters.
const leastToken = 20

// maxCodecBody bounds one request to the codec server, in bytes. A page of a history has
// some megabytes at most.
const maxCodecBody = 64 << 20

// codecHandler serves requests that have the token. Pages of any origin may send
// requests: the browser adds no credentials, so without the token they get nothing.
func codecHandler(ring *keyring.Ring, token string) http.Handler {
	codec := converter.NewPayloadCodecHTTPHandler(fermata.Codec(ring))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		// Temporal's UI may be on any origin. The token is the protection, not the origin.
		head.Set("Access-Control-Allow-Origin", "*")
		head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace")
		// Browsers ask for this before a public page may reach loopback.
		head.Set("Access-Control-Allow-Private-Network", "true")
		// A preflight request carries no token, so it is answered before the check.
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		given, inHeader := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		// The token may also be in the path: TEMPORAL_CODEC_ENDPOINT is only a URL.
		if first, rest, deeper := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); deeper {
			given, r.URL.Path = first, "/"+rest
		} else if !inHeader {
			given = ""
		}
		// Compared in constant time: the duration must not reveal the token.
		if subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1 {
			http.Error(w, "the token is missing or wrong: fermata codec prints it at its start", http.StatusForbidden)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxCodecBody)
		codec.ServeHTTP(w, r)
	})
}
