// Hello is a whole program: an agent with one tool, on a Temporal server in the
// same process.
package main
