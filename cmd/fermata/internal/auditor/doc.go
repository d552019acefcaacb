// Package auditor adds to the audit that the environment names: what runs are told, what becomes
// of what they ask, and the use of keys.
package auditor
