// Package amount adds and bounds numbers of tokens, micro-dollars, calls and runs, so that no
// sum overflows or falls, whatever models and other runs report.
package amount
