// Travel is a program with tests: an agent that books a trip by way of another one,
// asks before it pays, and looks a week later whether the tickets have come. Its
// tests are those of docs/testing.md.
package main
