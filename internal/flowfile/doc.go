// Package flowfile reads flows that are written as data, as in the part flows of an agents
// file. [Check] finds what is wrong with a [Definition], [New] makes a flow of it, and [Mermaid]
// draws it.
//
// One Go function interprets every definition. It uses package flow's public functions alone, so
// a flow from a file holds, forks, resumes and changes its version as any flow does.
package flowfile
