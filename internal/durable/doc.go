// Package durable declares what crosses Temporal, once and with types: activities and
// queries. A wrong payload is then a compile error on both sides. Errors cross as codes,
// by [Failure], [Rejection] and [FromTemporal] alone. What comes from outside is decoded
// strictly, by [Decode]. [Codec] encrypts payloads.
package durable
