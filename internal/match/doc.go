// Package match reports whether a JSON value fits a schema. It is for decisions inside
// workflows, which have to come out alike on every build, for years: so it is small, it is
// ours, and it takes a part of JSON Schema that is written down here. A schema with
// anything else is refused when it is said, and never guessed at.
//
// Taken are the keywords type, enum, const; properties, required, additionalProperties,
// minProperties, maxProperties; items, minItems, maxItems; minimum, maximum,
// exclusiveMinimum, exclusiveMaximum; minLength, maxLength; allOf, anyOf, oneOf, not; and true and false as schemas. Keywords that only describe, and those that
// begin with x-, are passed over.
// There is no $ref: a match that goes round in a circle never ends. There is no pattern:
// what a regular expression matches, and how long that takes, is up to a library.
package match
