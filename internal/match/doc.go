// Package match reports whether a JSON value fits a schema. It is for decisions in
// workflows, which must be the same in every replay, on every build, for years. So it is
// small, has no dependencies, and supports the part of JSON Schema that is listed here. A
// schema with anything else is refused when it is sent, never guessed at.
//
// It supports the keywords type, enum, const; properties, required, additionalProperties,
// minProperties, maxProperties; items, minItems, maxItems; minimum, maximum,
// exclusiveMinimum, exclusiveMaximum; minLength, maxLength; allOf, anyOf, oneOf, not; and
// the schemas true and false. It ignores keywords that only describe, and those that
// begin with x-. There is no $ref, since a circle of them never ends. There is no
// pattern: what a regular expression matches, and how long that takes, depends on a
// library.
package match
