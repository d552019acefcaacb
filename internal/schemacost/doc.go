// Package schemacost says what it costs to check a value against a JSON Schema: whether
// that ends, how many steps it takes, and how much its regular expressions weigh.
package schemacost
