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

// Exchange is a company's identity provider. It exchanges the ID token of a person for an
// assertion that an authorization server accepts (RFC 8693; MCP's enterprise-managed
// authorization). So the company decides who uses which server, and people sign in only
// once.
type Exchange struct {
	// URL is the provider's token endpoint.
	URL string
	// Client is our id at the provider, and Secret authenticates it. Secret may name
	// variables of Options.Env; it is empty for a public client.
	Client, Secret string
}

// check validates the options. url is the parsed token endpoint.
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

// notExchanged is an error that the identity provider reported.
type notExchanged struct {
	host string
	error
}

// Unwrap returns what the provider answered.
func (e notExchanged) Unwrap() error { return e.error }

// exchanged returns an assertion for an authorization server, in exchange for a person's
// ID token. It works only for that server and that resource. The caller holds the turn.
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
	// Another type, such as an access token of the provider, must not be sent to the
	// server.
	if err == nil && t.Extra("issued_token_type") != typeIDJAG {
		err = fmt.Errorf("its token is of the type %q, and not %s", cut(clean(fmt.Sprint(t.Extra("issued_token_type"))), maxShown), typeIDJAG)
	}
	if err != nil {
		return "", notExchanged{l.exchange.Host, err}
	}
	return t.AccessToken, nil
}
