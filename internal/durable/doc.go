// Package durable gives what crosses Temporal one typed declaration each:
// activities and queries are named once, and a wrong payload is a compile error
// on both sides. Errors cross as codes, by [toTemporal] and [FromTemporal] alone, and what
// comes from outside is decoded strictly, by [Decode].
package durable
