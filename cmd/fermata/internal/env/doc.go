// Package env reads the environment variables of this program: their names, their keys,
// and what a worker with this environment should know.
package env
