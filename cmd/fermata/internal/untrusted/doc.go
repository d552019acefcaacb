// Package untrusted writes text from outside: from models, tools, MCP servers,
// sub-agents, and people. All such text reaches a terminal through this package.
//
//   - [Text] shows every control, bidi and zero-width character as an escape, \u202e.
//     Ordinary text of any script stays as it is.
//   - [Name] is for names of tools, arguments, agents, approvers, sessions. It also escapes
//     characters that look like ASCII.
//   - [Line] is a text on one line. It says how much it cuts, and never cuts a host.
//   - [Margin] puts a mark before each line, which no text can remove.
//   - [Sprintf] formats a line to which no argument can add another.
//   - [Escape] is the last step before a terminal, for text that went through none of these.
package untrusted
