// Package roles has agents' definitions that are ready to use: a researcher, an implementer,
// a reviewer, a verifier, a merger and others. An agent takes one with [agent.Definition.Role]:
//
//	agent.Definition{Name: "checker", Model: "anthropic/claude-sonnet-5", Role: "reviewer"}
//
// The role fills in what the author leaves out; what the author writes always wins. Each role
// is a file in data, in the form of an agent in an agents file. Copy one to change it:
//
//	fermata roles copy reviewer
package roles
