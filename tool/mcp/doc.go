// Package mcp makes the tools of an MCP server a [tool.Source]. The server is a
// program that is started and spoken to over its standard input and output, or one
// that is reached by the streamable HTTP transport, or by the one before it (SSE).
//
//	tickets := mcp.New("tickets", []string{"npx", "tickets-mcp"}, &mcp.Options{
//		Env:     map[string]string{"TICKETS_TOKEN": token},
//		Network: true,
//	})
//	wiki := mcp.NewHTTP("wiki", "https://wiki.example.com/mcp", &mcp.Options{
//		Headers: map[string]string{"Authorization": "Bearer ${WIKI_TOKEN}"},
//		Env:     map[string]string{"WIKI_TOKEN": token},
//	})
//	defer tickets.Close()
//	defer wiki.Close()
//
// An agent that has "mcp:tickets" among its tools then sees tickets__search and
// whatever else the server lists.
//
// # A program
//
// It is started by the first List or Call. Each session has one of its own, for many
// calls at once, unless [Options.Per] says otherwise: what it keeps in mind of one
// session is not for another. When it has ended, the next List or Call starts it again.
// A call that it dies under fails at once and says so: what the call did is not known
// ([tool.ErrUnknown]), and it is not made again. [Server.Close] ends it and all that it started: its input is
// closed, a second later comes SIGTERM, another second later SIGKILL.
//
// It gets a short list of environment variables and [Options.Env], so that no
// key of this process reaches it by accident. The values of Options.Env are
// taken out of what is shown of its command and its error output.
//
// On Linux the kernel holds it as it holds commands of package tool/workspace. It has a HOME
// of the server's own and a temporary directory, reads the system's files, those that its
// command names and what lies beside them, and [Options.Read], writes [Options.Write], and
// has no network unless [Options.Network] says so. It is not started where the kernel can't
// do that ([Options.Confine]), or where this process is root ([Options.AsRoot]);
// [Server.CheckStart] tells. All that it started ends with it.
//
// # A URL
//
// A session is begun by the first List or Call. Where the server gives it an id, it may
// keep something in it, and each session of Fermata's has one of its own; else all share
// one. When the
// server has forgotten it, as after a restart, another is begun and the request made
// in that: the server has told that it did nothing. A call that the connection breaks
// under fails and says that nobody knows what it did; one that never left says that
// nothing was done. One that is refused or goes astray ends no other.
//
// Headers go to the URL's scheme, host and port alone. A redirect within those is
// followed if it keeps the request (307, 308); one to another server is refused, and
// neither headers nor arguments get there. Values of the headers and of Options.Env
// are taken out of every error, log, description and result. Values of less than 6
// bytes stay: nobody could read what remains. Certificates are checked against those
// that the system trusts; proxies are those of the environment (HTTPS_PROXY).
//
// # Signing in
//
// With [Options.OAuth], a request that is refused for want of a token is made again with
// one. The server says which authorization server gives it, and that where; neither may
// name a place on an inner network, and what proves the client goes to [OAuth.Issuer] alone. A
// person signs in by a question of the call that wants it: they open a page, and answer
// with the address where their browser ends. The code in it is of use only with what this
// process, or the [Vault], keeps beside. What has a person's token has a connection of its
// own. Tokens are bound to a key of ours where the authorization server can (DPoP).
//
// # What is believed of it
//
// Little, since it is others' program. Names that no model may call are changed,
// or left out where that is not possible; descriptions are bounded; tools with
// no or too large a schema are left out; and each is logged. Its annotations count for
// nothing, except for readOnlyHint under [Options.TrustHints]: else a server could say of a
// tool that pays that it only reads, and rules for what writes would not ask. No annotation
// makes a call be made again: see [tool.Options.Attempts] for what hangs on that.
//
// Tools are asked for whenever List is called, however long the server allows its
// list to be kept. A tool that it does not list any more when it is called is refused
// and nothing is done.
//
// A message has at most 16 MiB and 200,000 values; an answer with all that precedes it, and
// a list on all its pages, have at most 16 MiB.
//
// A call hands the runtime's idempotency key on in _meta, under [KeyMeta].
//
// # What it asks people
//
// What the protocol calls elicitation is a question of the call, see [tool.Call.Ask],
// and nothing here waits for its answer. A server of protocol 2026-07-28 answers a call
// with its questions, and the call goes on with the answers, in whatever process. One of
// an older protocol asks in the middle of a call and waits: with [ElicitReplay] the call
// is cancelled and made again, over a connection of its own, else the server is told
// that there is nobody, and told no if it asks all the same, and the model is told of
// the question. One that refuses a call until somebody has opened a page has the call
// made again when they have.
//
// # Protocol versions
//
// The handshake begins with initialize, which every server of today knows. Only
// one that answers it with an error is started once more and asked for
// server/discover first, as the SDK does by itself: there are servers that end
// when they are asked that (modelcontextprotocol/go-sdk issue 1177). With
// [Options.Elicit] it is the other way round, and one that ends or says nothing is
// started once more, too; a server that refuses for another reason, as for a wrong
// token, is not asked twice.
package mcp
