// Package skill reads skills: directories with a file SKILL.md, in the open format of
// agentskills.io. SKILL.md begins with YAML front matter that names and describes the skill.
// The text after it is its instructions. All other files are references and scripts.
//
// Other people write skills. So everything is bounded, no link leads out of the directory,
// and one digest covers all files: a run that began with a digest never reads other words.
//
// An MCP server may serve skills, too. [FromServer] makes them of what the server lists, under the
// same bounds.
package skill
