// Order is a Temporal workflow of a shop's own that asks an agent, and ships what the agent
// allows. It runs on a Temporal server in the same process.
package main
