// Package workflows runs an agent as a Temporal workflow. It turns what happens into
// inputs, hands them to [loop.Step], and performs the effects. It decides nothing about
// agents.
//
// Read run.go first, then queue.go, await.go, perform.go and activity.go. model.go and tool.go
// say what a lost worker means for a call. After them: verbs.go for updates and signals, tree.go
// for parents and children.
package workflows
