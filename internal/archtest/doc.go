// Package archtest holds the house rules as tests: which folder may import which,
// what a package must have, and how large things may grow. The tree is read with
// go/parser in this process, so that the test cache sees every change.
package archtest
