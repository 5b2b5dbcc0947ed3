// Package bounds counts resources that all clients of a server share: the writes under way, the
// memory of requests and replies, and the work of refusals. It decides whether there is room; the
// fate of a connection for which there is none, the server decides.
package bounds
