// Package mcp makes the tools of an MCP server a [tool.Source]. The server is either
// a program that this package starts and reaches over standard input and output, or one
// that it reaches by streamable HTTP or the older HTTP with SSE.
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
// An agent with "mcp:tickets" among its tools then sees tickets__search and all other tools
// that the server lists. Images, audio and blobs of an answer are shown as files of the result
// ([tool.Call.AddFile]); 20 at most.
//
// # A program
//
// The first List or Call starts it. Each session has a process of its own, for many calls
// at once, unless [Options.Per] says otherwise: what a process remembers of one session
// must not reach another. When it has ended, the next List or Call starts it again. If it
// dies during a call, the call fails at once. Its effect is then unknown
// ([tool.ErrUnknown]), and it is not repeated. [Server.Close] ends the process and all
// that it started: its input is closed, a second later it gets SIGTERM, and another
// second later SIGKILL.
//
// It gets a short list of environment variables and [Options.Env], so that no key of this
// process reaches it by accident. The values of Options.Env are removed from its command
// and its error output wherever these are shown.
//
// On Linux the kernel confines it like the commands of package tool/workspace. It has a
// HOME of the server's own and a temporary directory. It reads the system's files, those
// that its command names, what lies beside them, and [Options.Read]. It writes to
// [Options.Write]. It has no network unless [Options.Network] says so. If the kernel
// can't do that, it is not started ([Options.Confine]); nor if this process is root
// ([Options.AsRoot]). [Server.CheckStart] tells. All that it started ends with it.
//
// # A URL
//
// The first List or Call begins a session of the protocol. If the server gives it an id,
// it may keep state in it. Then each session of Fermata has one of its own; otherwise all
// share one. If the server has forgotten the session, for example after a restart,
// another is begun and the request is made again: the server has said that it did
// nothing. If the connection breaks during a call, the call fails and its effect is
// unknown. A call that was never sent says that nothing was done. A failed request ends
// no other.
// Headers go only to the URL's scheme, host and port. A redirect there is followed if it
// keeps the request (307, 308). A redirect to another server is refused, and gets neither
// headers nor arguments. Values of the headers and of Options.Env are removed from every
// error, log, description and result. Values shorter than 6 bytes stay: without them the
// rest would be unreadable. Certificates are checked against those that the system
// trusts; proxies come from the environment (HTTPS_PROXY).
//
// # Signing in
//
// With [Options.OAuth], a request that is refused for want of a token is made again with
// one. The server names its authorization server, which names its endpoints. Neither may
// name a place on an inner network, and the client's secret goes only to [OAuth.Issuer].
// To sign in, a person answers a question of the call: they open a page, and answer with
// the address that their browser ends at. The code in it is useless without what this
// process, or the [Vault], keeps. Calls with a person's token have a connection of their
// own. Tokens are bound to a key of ours if the authorization server supports it (DPoP).
//
// # What the server is trusted with
//
// Little, since it is other people's program. Names that no model may call are changed,
// or left out if that is not possible. Descriptions are bounded. Tools without a schema,
// or with a schema that is too large, are left out. Each of these is logged. Annotations
// are ignored, except readOnlyHint under [Options.TrustHints]: otherwise a server could
// say that a tool that pays only reads, and rules for writing tools would not apply. No
// annotation causes a call to be repeated; see [tool.Options.Attempts].
//
// Each List asks the server for its tools, however long the server allows its list to be
// cached. A call of a tool that the server no longer lists is refused, and nothing is
// done.
//
// A message has at most 16 MiB and 200,000 values. An answer with all that precedes it
// has at most 16 MiB; so has a list with all its pages.
//
// A call passes the runtime's idempotency key in _meta, under [KeyMeta].
//
// # Skills
//
// [Server.Skills] lists the skills that a server serves (extension io.modelcontextprotocol/skills),
// for worker.Options.Skills. Their files are read when a run needs them, and compared with the
// digests of the list.
//
// # What it asks people
//
// The protocol's elicitation becomes a question of the call (see [tool.Call.Ask]);
// nothing here waits for its answer. A server of protocol 2026-07-28 answers a call with
// its questions. The call then continues with the answers, in any process. A server of an
// older protocol asks in the middle of a call, and waits. With [ElicitReplay] that call
// is cancelled, and made again over a connection of its own. Without it the server is
// told that nobody can answer, its questions are declined, and the model is told of them.
// A server may also refuse a call until somebody has opened a page; the call is made
// again when they have.
//
// # Protocol versions
//
// The handshake begins with initialize, which every server of today knows. A server that
// answers with an error is started again and asked for server/discover first, as the SDK
// does by itself. That is not the default, since some servers end when they are asked for
// it (modelcontextprotocol/go-sdk issue 1177). With [Options.Elicit] the order is
// reversed, and a server that ends or says nothing is started again, too. A server that
// refuses for another reason, such as a wrong token, is not asked twice.
package mcp
