package mcp

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/fermata-agents/fermata/agent"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

const (
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeID        = "urn:ietf:params:oauth:token-type:id_token"
	typeIDJAG     = "urn:ietf:params:oauth:token-type:id-jag"
)

// Exchange is a company's identity provider, which gives for the ID token of somebody who
// has signed in to it what an authorization server takes (RFC 8693; MCP calls the whole
// enterprise-managed authorization). So the company decides who uses which server, and
// nobody signs in to each.
type Exchange struct {
	// URL is the provider's token endpoint.
	URL string
	// Client is the id that the provider knows us by, and Secret what proves it; a Secret
	// may name variables of Options.Env, and empty is a client that is public.
	Client, Secret string
}

// check reads the options. url is where the exchange is asked for.
func (e *Exchange) check(o *Options) (_ *Exchange, url *url.URL, err error) {
	if url, err = address(e.URL, o.Plain); err != nil {
		return nil, nil, agent.Errorf(agent.CodeInvalidInput, "its OAuth exchange: %w", err)
	}
	if e.Client == "" {
		return nil, nil, agent.Errorf(agent.CodeInvalidInput, "its OAuth exchange names no client, the id that the identity provider knows us by")
	}
	for _, name := range Variables(e.Secret) {
		if o.Env[name] == "" {
			return nil, nil, agent.Errorf(agent.CodeInvalidInput, "its OAuth exchange names the variable %s, which has no value", name)
		}
	}
	return &Exchange{URL: e.URL, Client: e.Client, Secret: o.fill(e.Secret)}, url, nil
}

// notExchanged is an error of the identity provider's.
type notExchanged struct {
	host string
	error
}

// Unwrap gives what it answered.
func (e notExchanged) Unwrap() error { return e.error }

// exchanged is an assertion for an authorization server, for the ID token of a person. It
// is good for that server and that resource alone. The caller has the turn.
func (l *login) exchanged(ctx context.Context, at terms, id string) (string, error) {
	e := l.Exchange
	values := url.Values{
		"grant_type": {grantExchange}, "requested_token_type": {typeIDJAG}, "subject_token": {id}, "subject_token_type": {typeID},
		"audience": {at.Issuer}, "resource": {at.Resource},
	}
	if len(at.Scopes) > 0 {
		values.Set("scope", strings.Join(at.Scopes, " "))
	}
	c := clientcredentials.Config{ClientID: e.Client, ClientSecret: e.Secret, TokenURL: e.URL, EndpointParams: values}
	if e.Secret == "" {
		c.AuthStyle = oauth2.AuthStyleInParams
	}
	t, err := c.Token(context.WithValue(ctx, oauth2.HTTPClient, l.server.outside))
	if err == nil && t.Extra("issued_token_type") != typeIDJAG {
		err = fmt.Errorf("its token is of the type %q, and not %s", cut(clean(fmt.Sprint(t.Extra("issued_token_type"))), maxShown), typeIDJAG)
	}
	if err != nil {
		return "", notExchanged{l.exchange.Host, err}
	}
	return t.AccessToken, nil
}
