// Package bounds counts what all clients of a server together may use: the writes under way, and
// the memory of requests and replies. It decides whether there is room; what becomes of a
// connection for which there is none, the server decides.
package bounds
