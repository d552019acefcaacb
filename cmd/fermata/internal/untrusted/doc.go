// Package untrusted writes text that came from outside: from models, tools, MCP servers,
// sub-agents, and people. It is the only way of such text to a terminal.
//
//   - [Text] shows every control, bidi and zero-width character as an escape, \u202e.
//     Ordinary text of any script stays as it is.
//   - [Name] is for names: of tools, arguments, agents, approvers, sessions. It also shows
//     characters that look like ASCII as escapes.
//   - [Line] is a text on one line. It says how much it cuts, and never cuts a host.
//   - [Margin] puts a mark before each line, which a text can't do without.
//   - [Sprintf] formats a line to which no argument can add another.
//   - [Writer] is what stands before a terminal, for what came by none of these.
package untrusted
