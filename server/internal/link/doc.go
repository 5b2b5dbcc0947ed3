// Package link is the server's end of a client's connection: the socket, TLS on it, buffers for
// what is read and for what is to be sent, and the end of the connection. It knows frames, but
// nothing of requests and sessions: the owner of a Link appends replies to Link.Out, and handles
// what an Input holds.
//
// An idle link holds a goroutine, which waits in the runtime's poller, and no buffer. A client that
// does not read is not read either. What a client makes a link hold is charged to Host.Memory.
package link
