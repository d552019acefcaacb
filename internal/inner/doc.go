// Package inner separates addresses of the internet from those that lead inside: to this
// machine, to private networks, and to what clouds keep beside them.
package inner
