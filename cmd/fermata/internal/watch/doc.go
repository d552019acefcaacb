// Package watch notices that files have changed. It looks, and uses no notifications of the operating
// system: those do not come for shared folders, or for what is below a directory.
package watch
