// Package files reads files that flags name.
package files
