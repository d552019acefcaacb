// Package filebody puts files into the JSON body of a request when the rest of it is written. The
// SDKs of providers copy each value several times while they write JSON: a body of 15 MB took them
// 200 MB of memory.
package filebody
