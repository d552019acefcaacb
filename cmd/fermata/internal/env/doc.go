// Package env reads the environment variables of this program: what they are called, the
// keys that they hold, and what a worker with this environment should know of it.
package env
