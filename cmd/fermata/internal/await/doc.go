// Package await waits until a time has passed or a context ends.
package await
