// Package localworker starts workers in this process for the agents of a file: with the store,
// the keys, the policy and the audit of this environment, and with nothing of this program's own
// in reach of their tools.
package localworker
