// Package secret reads keys and tokens: from an environment variable, or from a file that
// the variable's name with _FILE behind it names, such as a mounted secret. It also keeps other processes from reading
// this one's memory.
package secret
