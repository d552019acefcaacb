// Package rawjson reads JSON as text, without decoding it: how deeply it is nested,
// whether a name occurs twice, and which escapes it has. It knows no types of ours.
package rawjson
