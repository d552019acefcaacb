package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"github.com/fermata-agents/fermata/agent"
	fermata "github.com/fermata-agents/fermata/client"
	"github.com/fermata-agents/fermata/cmd/fermata/internal/env"
	"github.com/fermata-agents/fermata/keyring"
)

// Whoever has the token decrypts, by the path or by a header; nobody else does, from
// whatever page.
func TestCodecServer(t *testing.T) {
	key, err := keyring.New("k1")
	require.NoError(t, err)
	ring, err := keyring.Parse(key)
	require.NoError(t, err)
	s := httptest.NewServer(codecHandler(ring, "sesame"))
	t.Cleanup(s.Close)
	plain, err := converter.GetDefaultDataConverter().ToPayloads("the blue door")
	require.NoError(t, err)
	sealed, err := fermata.Codec(ring).Encode(plain.GetPayloads())
	require.NoError(t, err)
	bearer := func(r *http.Request) error { r.Header.Set("Authorization", "Bearer sesame"); return nil }
	for name, o := range map[string]converter.RemotePayloadCodecOptions{
		"in the path":   {Endpoint: s.URL + "/sesame"},
		"in the header": {Endpoint: s.URL, ModifyRequest: bearer},
	} {
		remote := converter.NewRemotePayloadCodec(o)
		back, err := remote.Decode(sealed)
		require.NoError(t, err, name)
		require.Equal(t, `"the blue door"`, string(back[0].GetData()), name)
		again, err := remote.Encode(plain.GetPayloads())
		require.NoError(t, err, name)
		require.NotContains(t, string(again[0].GetData()), "blue", name)
	}
	for _, path := range []string{"/decode", "/open/decode", "//decode"} {
		r, err := http.Post(s.URL+path, "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		require.Equal(t, http.StatusForbidden, r.StatusCode, path)
	}
	ask, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, s.URL+"/sesame/decode", nil)
	require.NoError(t, err)
	r, err := http.DefaultClient.Do(ask)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, http.StatusNoContent, r.StatusCode)
	require.Equal(t, "*", r.Header.Get("Access-Control-Allow-Origin"))
}

// A token that can be guessed is refused.
func TestCodecTokenIsLong(t *testing.T) {
	key, err := keyring.New("k1")
	require.NoError(t, err)
	t.Setenv(env.Encryption, key)
	t.Setenv(env.Codec, "sesame")
	r := inProcess(t, "codec", "--listen", "127.0.0.1:0")
	require.Equal(t, agent.CodeInvalidInput.ExitStatus(), r.exit, r.out)
	require.Contains(t, r.err, env.Codec+" has 6 characters")
}

func TestCodecKey(t *testing.T) {
	r := inProcess(t, "codec", "key", "k1")
	require.Zero(t, r.exit, r.err)
	_, err := keyring.Parse(strings.TrimSpace(r.out))
	require.NoError(t, err)
	r = inProcess(t, "codec", "key", "K 1")
	require.Equal(t, 2, r.exit)
	r = inProcess(t, "codec")
	require.Equal(t, 5, r.exit)
	require.Contains(t, r.err, "[not_set_up] there are no keys")
	t.Setenv(env.Encryption, "k1:AAAA")
	r = inProcess(t, "codec")
	require.Equal(t, 2, r.exit)
	require.Contains(t, r.err, "key 1 has 3 bytes")
	require.NotContains(t, r.err, "AAAA")
}

// A worker that lacks a key which came later says so once, in words, and ends; so does dev.
func TestAWorkerThatLacksALaterKeyEnds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dev", "worker"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			project(b)
			later := *b
			e1, e2 := testKey(t, "e1"), testKey(t, "e2")
			b.env = append(b.env, unreadFor+"=1s", env.Encryption+"="+e1)
			later.env = append(later.env, env.Encryption+"="+e2+","+e1)
			if name == "worker" {
				later.elsewhere().start("dev", "--addr", b.addr).until("ready")
			}
			d := b.start(name, "--agents", "fermata.yaml")
			d.until("ready")
			require.Zero(t, later.run("run", "reader", "What do the notes say?", "--detach").exit)
			r := d.wait()
			require.Equal(t, agent.CodeNotSetUp.ExitStatus(), r.exit, r.err)
			require.Equal(t, 1, strings.Count(r.err, "this worker takes no more work"), r.err)
			require.Regexp(t, `(?m)^fermata: error \[not_set_up\] the worker has stopped: .*it is encrypted with key e2, and this process has e1: give it that key`, r.err)
		})
	}
}

func testKey(t *testing.T, id string) string {
	t.Helper()
	key, err := keyring.New(id)
	require.NoError(t, err)
	return key
}
