package mcp

import (
	"net/http"
	"net/http/httptrace"
)

// sendAuthorized makes a request. If the server refuses it because it needs a token, it
// obtains one and makes the request again, once.
func (c *httpSender) sendAuthorized(req *http.Request, t *attempt) (*http.Response, error) {
	as := c.web.as
	if as == nil || !same(req.URL, c.server.url) {
		return c.sendOnce(req, t, pass{})
	}
	p, err := as.pass(req.Context())
	if err != nil {
		return nil, noToken{err}
	}
	resp, err := c.sendWithNonce(req, t, p)
	// Only a POST has a caller who could ask a person to sign in.
	if err != nil || req.Method != http.MethodPost || req.GetBody == nil || !demands(resp) {
		return resp, err
	}
	// Before obtain: a body that can't be read again makes a new token useless.
	again, err := withNewBody(req)
	if err == nil {
		err = as.obtain(req.Context(), resp, p.token)
	}
	resp.Body.Close()
	if err == nil {
		p, err = as.pass(req.Context())
	}
	if err != nil {
		return nil, noToken{err}
	}
	return c.sendWithNonce(again, t, p)
}

// withNewBody returns a copy of a request whose body starts at its beginning.
func withNewBody(req *http.Request) (_ *http.Request, err error) {
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		again.Body, err = req.GetBody()
	}
	return again, err
}

// sendWithNonce makes a request with a pass, and again if the server asks for its nonce in the
// proof.
func (c *httpSender) sendWithNonce(req *http.Request, t *attempt, p pass) (*http.Response, error) {
	resp, err := c.sendOnce(req, t, p)
	if err != nil || p.key == nil {
		return resp, err
	}
	// Kept for all requests: without it each one would be refused first and be made
	// twice.
	if nonce := resp.Header.Get(headerNonce); nonce != "" {
		c.web.as.nonce.Store(&nonce)
	}
	if !wantsNonce(resp) || req.Body != nil && req.GetBody == nil {
		return resp, nil
	}
	resp.Body.Close()
	again, err := withNewBody(req)
	if err != nil {
		return nil, err
	}
	return c.sendOnce(again, t, p)
}

// sendOnce makes a request with the server's headers, and with a pass if there is one.
func (c *httpSender) sendOnce(req *http.Request, t *attempt, p pass) (*http.Response, error) {
	// Once there is a connection, the request may reach the server. Before, an error can
	// say that nothing was done.
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { t.leave() }})
	req = req.Clone(ctx)
	// Headers hold secrets, and belong to the URL's scheme, host and port alone.
	if same(req.URL, c.server.url) {
		for name, value := range c.server.headers {
			req.Header.Set(name, value)
		}
	}
	var nonce string
	if p.key != nil {
		if last := c.web.as.nonce.Load(); last != nil {
			nonce = *last
		}
	}
	if err := p.show(req, nonce); err != nil {
		return nil, noToken{err}
	}
	t.begin(c.web.sse || req.Header.Get("Mcp-Session-Id") != "")
	return c.base.RoundTrip(req)
}
