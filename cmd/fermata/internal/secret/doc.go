// Package secret reads keys and tokens: from an environment variable, or from a file that
// the variable's name with _FILE behind it names, such as a mounted secret.
package secret
