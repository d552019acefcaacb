// Package testsuite is for the tests of those who use fermata: a model that
// answers from a script, at no cost and the same every time, and [Store], which
// checks that a store of theirs keeps the contract.
package testsuite
