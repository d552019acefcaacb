// Package auditor adds to the audit that the environment names: what runs are told, what
// happens to their requests, and the use of keys.
package auditor
