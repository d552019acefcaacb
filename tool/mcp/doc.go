// Package mcp makes the tools of an MCP server, which is started as a process
// and spoken to over its standard input and output, a [tool.Source].
//
//	tickets := mcp.New("tickets", []string{"npx", "tickets-mcp"}, &mcp.Options{
//		Env: map[string]string{"TICKETS_TOKEN": token},
//	})
//	defer tickets.Close()
//
// An agent that has "mcp:tickets" among its tools then sees tickets__search and
// whatever else the server lists.
//
// # The process
//
// It is started by the first List or Call and shared by all that follow, many at
// once. When it has ended, the next List or Call starts it again. A call that it
// dies under fails at once and says so: what the call did is not known, and it
// is not made again. [Server.Close] ends it and all that it started: its input is
// closed, a second later comes SIGTERM, another second later SIGKILL.
//
// It gets a short list of environment variables and [Options.Env], so that no
// key of this process reaches it by accident. The values of Options.Env are
// taken out of what is shown of its command and its error output. It is not
// confined: it is chosen by who runs the worker, not by a model.
//
// # What is believed of it
//
// Little, since it is others' program. Names that no model may call are changed,
// or left out where that is not possible; descriptions are bounded; tools with
// no or too large a schema are left out; and each is logged. Of its annotations only
// readOnlyHint is taken over. It is a claim, good for showing people which tools
// want to be watched and for nothing that must not go wrong. idempotentHint does
// not make a call be made again: see [tool.Options.Attempts] for what hangs on that.
//
// A call hands the runtime's idempotency key on in _meta, under [KeyMeta].
//
// # Protocol versions
//
// The handshake begins with initialize, which every server of today knows. Only
// one that answers it with an error is started once more and asked for
// server/discover first, as the SDK does by itself: there are servers that end
// when they are asked that (modelcontextprotocol/go-sdk issue 1177).
package mcp
