// Package web lets a model read pages of the web: its tool web_fetch gets a page by its
// URL and returns it as text.
//
//	f, err := web.New(&web.Options{Hosts: []string{"docs.example.com", "*.python.org"}})
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	worker.Options{Tools: []tool.Tool{f.Tool()}}
//
// # What is fetched
//
// Only hosts of [Options.Hosts] and [Options.Private], by GET, over https or http, without
// credentials and cookies. Each redirect is checked like the first URL; five are followed,
// none of them from https to http. Rules of an agent see the URL that the model wrote, and
// not those of redirects.
//
// A host's address is checked when the connection to it begins, so a name that changes its
// address gains nothing. Addresses of private networks, of carriers and of this machine are
// refused, unless the host is in [Options.Private]. Link-local, multicast and reserved
// addresses, and those of clouds' metadata, are always refused. An IPv4 address within an
// IPv6 one counts as itself.
//
// # What the model reads
//
// HTML becomes Markdown without scripts, styles and what its own attributes hide; links are
// absolute. Text, JSON and XML stay as they are. Images (PNG, JPEG, GIF, WebP) and PDFs of at
// most 5 MB are shown as files of the result. Of any other file the model reads the type and the
// size. What the bytes are counts, and not only what the server says of them. A
// long page comes in parts, as from fs_read.
//
// A page may try to instruct the model. So each of its lines has a mark, characters that
// can't be seen are removed, and the answer says whose words these are. That helps, and is
// no boundary: rules, hosts and limits are.
//
// # Bounds
//
// A page has 5 MB at most, packed and unpacked; the rest is left out, with a note. An answer
// takes 30 s at most, and its header 64 kB. 4 requests to a host, and 32 in all, are under
// way at once. Of HTML, 2 MB are read; a tag has 256 kB, and a tree 100,000 nodes and 100 levels.
//
// # What is kept
//
// Pages are kept in memory, 64 MB at most, and asked for again as their servers say
// (Cache-Control, Expires, ETag, Last-Modified). Requests carry nothing of who asks, so
// every call of a Fetcher may read what another one fetched; a page that its server marks
// as private is not kept. Make a Fetcher for each tenant.
package web
