// Package amount adds and bounds numbers of tokens, micro-dollars, calls and runs.
// Whatever models and other runs report, no sum overflows or decreases.
package amount
