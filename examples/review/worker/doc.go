// Worker is a worker of the flow that reviews changes.
package main
