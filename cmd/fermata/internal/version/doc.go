// Package version says what this build is.
package version
