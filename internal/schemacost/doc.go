// Package schemacost says what it costs to hold a value to a JSON Schema: whether that ends,
// how many steps it takes, and how much its regular expressions weigh.
package schemacost
