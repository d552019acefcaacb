// Package disk measures the disks to which the store and the embedded server write.
package disk
