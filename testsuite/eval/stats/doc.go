// Package stats has the statistics of evaluations: intervals of pass rates, pass@k and
// pass^k, and tests that say whether a difference may be chance. All functions are pure,
// and the same numbers always give the same result.
package stats
