package web

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fermata-agents/fermata/agent"
)

func TestNothingIsAllowedByDefault(t *testing.T) {
	for _, o := range []*Options{nil, {}, {Proxy: true}} {
		_, err := New(o)
		require.ErrorIs(t, err, agent.CodeInvalidInput)
		require.ErrorContains(t, err, "name hosts")
	}
}

func TestHostsThatAreRefused(t *testing.T) {
	for entry, why := range map[string]string{
		"": "is no host", " ": "is no host", "https://example.com": "is no host", "example.com/docs": "is no host", "user@example.com": "is no host", "a b": "is no host", "*example.com": "is no host", "a.*.com": "is no host", "**": "is no host",
		"2130706433": "is no host", "0x7f.1": "is no host", "127.1": "is no host", "fe80::1%eth0": "is no host",
		"example.com:": "port", "example.com:0": "port", "example.com:65536": "port", "example.com:080": "port", "example.com:http": "port",
		"10.0.0.1": "under private", "[::1]": "under private", "127.0.0.1:8080": "under private", "::ffff:10.0.0.1": "under private",
		"169.254.169.254": "no page", "0.0.0.0": "no page", "*.10.0.0.1": "no names below",
	} {
		_, err := New(&Options{Hosts: []string{entry}})
		require.ErrorIs(t, err, agent.CodeInvalidInput, entry)
		require.ErrorContains(t, err, why, entry)
	}
	for _, entry := range []string{"*", "*:8080", "169.254.169.254", "fd00:ec2::254"} {
		_, err := New(&Options{Private: []string{entry}})
		require.Error(t, err, entry)
	}
}

func TestCheck(t *testing.T) {
	f := fetcher(t, Options{
		Hosts:   []string{"docs.example.com", "*.python.org", "Bücher.example", "api.example.com:8443", "93.184.216.34", "[2606:2800:220:1::]:8080"},
		Private: []string{"wiki.acme.corp", "10.1.2.3:8080"},
	}, nil)
	for text, want := range map[string]string{
		"https://docs.example.com":                   "https://docs.example.com/",
		"http://DOCS.example.com.:80/a?b=c#d":        "http://docs.example.com/a?b=c",
		"https://docs.python.org/3/":                 "https://docs.python.org/3/",
		"https://b%C3%BCcher.example/":               "https://xn--bcher-kva.example/",
		"https://bücher.example/":                    "https://xn--bcher-kva.example/",
		"https://api.example.com:8443/":              "https://api.example.com:8443/",
		"http://93.184.216.34/":                      "http://93.184.216.34/",
		"http://[2606:2800:0220:0001::]:8080/":       "http://[2606:2800:220:1::]:8080/",
		"http://[::ffff:93.184.216.34]/":             "http://93.184.216.34/",
		"http://wiki.acme.corp/":                     "http://wiki.acme.corp/",
		"http://10.1.2.3:8080/":                      "http://10.1.2.3:8080/",
		"https://docs.example.com/a\u00e9?q= \u00e9": "https://docs.example.com/a%C3%A9?q=%20%C3%A9",
	} {
		u, err := f.check(text)
		require.NoError(t, err, text)
		require.Equal(t, want, u.String())
	}
	for _, text := range []string{
		"", "docs.example.com", "//docs.example.com/", "ftp://docs.example.com/", "file:///etc/passwd", "javascript:alert(1)", "https:docs.example.com", "https:///a", "data:text/html,x", "gopher://docs.example.com/",
		"https://user@docs.example.com/", "https://docs.example.com@evil.example/", "https://:x@docs.example.com/", "https://docs.example.com\\@evil.example/", "https://docs.example.com%00.evil.example/",
		"https://python.org/", "https://evilpython.org/", "https://docs.example.com.evil.example/", "https://evil.example/docs.example.com", "https://example.com/",
		"https://docs.example.com:8443/", "https://api.example.com/", "https://docs.example.com:65616/", "https://docs.example.com:0443/", "http://93.184.216.35/", "http://10.1.2.3/",
		"http://127.0.0.1/", "http://localhost/", "http://2130706433/", "http://0x7f000001/", "http://127.1/", "http://0177.0.0.1/", "http://[::1]/", "http://[::ffff:7f00:1]/", "http://１２７.0.0.1/", "http://[fe80::1%25eth0]/",
		"https://docs.example.com/\x00", "https://docs.example.com/\n", "https://docs.example.com/" + strings.Repeat("a", maxURL),
	} {
		_, err := f.check(text)
		require.ErrorIs(t, err, agent.CodeDenied, text)
		require.NotContains(t, err.Error(), "\n", text)
	}
	_, err := f.check("https://evil.example/")
	require.ErrorContains(t, err, "web.hosts of the agents file: docs.example.com, *.python.org, ")
}

// Every name stands for names alone.
func TestEveryHost(t *testing.T) {
	f := fetcher(t, Options{Hosts: []string{"*"}}, nil)
	_, err := f.check("https://anything.example/")
	require.NoError(t, err)
	for _, text := range []string{"http://10.0.0.1/", "http://93.184.216.34/", "http://[::1]/", "http://2130706433/", "http://anything.example:8080/"} {
		_, err := f.check(text)
		require.ErrorIs(t, err, agent.CodeDenied, text)
	}
}

// Whatever a model writes leads to a host that is allowed, or nowhere.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{
		"https://docs.example.com/a?b#c", "http://a.python.org:80", "https://user:x@docs.example.com/", "http://[::ffff:10.1.2.3]:8080/", "http://2130706433/", "HTTPS://BÜCHER.example:443/", "https://docs.example.com\\@x/", "http://１０.1.2.3:8080/",
	} {
		f.Add(text)
	}
	w, err := New(&Options{Hosts: []string{"docs.example.com", "*.python.org", "bücher.example"}, Private: []string{"10.1.2.3:8080"}})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		u, err := w.check(text)
		if err != nil {
			require.ErrorIs(t, err, agent.CodeDenied)
			require.NotContains(t, err.Error(), "\n")
			return
		}
		name := u.Hostname()
		require.True(t, name == "docs.example.com" || name == "xn--bcher-kva.example" || strings.HasSuffix(name, ".python.org") || u.Host == "10.1.2.3:8080", "%q leads to %s", text, u.Host)
		require.Nil(t, u.User)
		require.Contains(t, []string{"http", "https"}, u.Scheme)
		if len(u.String()) <= maxURL {
			again, err := w.check(u.String())
			require.NoError(t, err)
			require.Equal(t, u.String(), again.String())
		}
	})
}
