// Package secret reads keys and tokens from an environment variable, or from the file
// that the variable NAME_FILE names, such as a mounted secret. It also keeps other
// processes from reading this one's memory.
package secret
