package model

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Versions of an API in a path.
var (
	anyVersion   = regexp.MustCompile(`/v\d+((alpha|beta)\d*)?(/|$)`)
	lastVersion  = regexp.MustCompile(`/v\d+((alpha|beta)\d*)?$`)
	twoVersions  = regexp.MustCompile(`/v\d+((alpha|beta)\d*)?/v\d+((alpha|beta)\d*)?/`)
	defaultPorts = map[string]string{"https": ":443", "http": ":80"}
)

// WrongEndpoint returns a hint after an answer that no API gives: a redirect, a 404, or a
// web page. It is empty for other answers. Adapters append it to a fault's message.
// version is the end of base URLs, "v1"; empty if they have none.
func (e *Endpoint) WrongEndpoint(res *http.Response, version string) string {
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return e.redirected(res)
	case res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusOK:
		return ""
	}
	path, base := "", strings.TrimRight(e.base, "/")
	if res.Request != nil {
		path = res.Request.URL.Path
	}
	switch {
	case twoVersions.MatchString(path) && lastVersion.MatchString(base):
		return fmt.Sprintf(": the path %s has a version twice; the base URL should be %s", path, lastVersion.ReplaceAllString(base, ""))
	case path != "" && version != "" && !anyVersion.MatchString(path):
		return fmt.Sprintf(": is there such an API at %s? Its base URL mostly ends in /%s: %s/%s", e.addr, version, base, version)
	}
	return fmt.Sprintf(": is there such an API at %s? Correct the base URL %s", e.addr, base)
}

// redirected returns the base URL to which a redirect leads.
func (e *Endpoint) redirected(res *http.Response) string {
	to, err := res.Location()
	if err != nil {
		return ": it redirects without saying where to; correct the base URL"
	}
	said := fmt.Sprintf(" (to %s): ", to.Redacted())
	base, err := url.Parse(e.base)
	if err != nil || res.Request == nil {
		return said + "correct the base URL"
	}
	rest, under := strings.CutPrefix(res.Request.URL.Path, strings.TrimRight(base.Path, "/"))
	path, same := strings.CutSuffix(to.Path, rest)
	if !under || !same || rest == "" {
		return said + "the API is not there, it may be a page to sign in at; correct the base URL"
	}
	host := strings.TrimSuffix(to.Host, cmp.Or(defaultPorts[to.Scheme], " "))
	return fmt.Sprintf("%sthe base URL should be %s://%s%s", said, to.Scheme, host, path)
}
