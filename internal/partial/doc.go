// Package partial reads the JSON of an answer while it still comes. At any point it gives
// the value so far as valid JSON: strings end where the text ends, lists and objects are
// closed, and what is not complete otherwise is left out. The value fits the JSON Schema of
// the answer so far. Each piece costs as much as it is long, whatever came before.
package partial
