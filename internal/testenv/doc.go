// Package testenv is for tests of several packages. It says which tests run: those that
// anybody can run in minutes, or all. [FailureOf] returns what a helper of tests fails with.
package testenv
