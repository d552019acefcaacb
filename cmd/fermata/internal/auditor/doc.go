// Package auditor adds to the audit that the environment names: the verbs that
// runs receive, what happens to their requests, and the use of keys.
package auditor
