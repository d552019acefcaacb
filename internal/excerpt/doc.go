// Package excerpt cuts texts that are too long to be recorded, and says in them that they
// were cut.
package excerpt
