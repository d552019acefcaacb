// Package await waits in a way that ends with a context.
package await
