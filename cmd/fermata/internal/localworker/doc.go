// Package localworker starts workers in this process for the agents of a file. They have
// the store, the keys, the policy and the audit of this environment. Their tools can't
// reach the files of this program.
package localworker
