// Package excerpt cuts texts that are too long to record, and marks the cut.
package excerpt
