package memnet

import "net"

// Pipe returns both ends of a connection that belongs to no network: nothing on it takes time, and nothing can be cut or
// torn. Unlike net.Pipe's it is buffered (M3) and ends as TCP does (M5). The names are the ends' addresses: the server's
// RemoteAddr shows clientName.
func Pipe(clientName, serverName string) (client, server net.Conn) {
	there, back := newStream(link{}, linkState{}), newStream(link{}, linkState{})
	return &conn{in: back, out: there, local: Addr(clientName), remote: Addr(serverName)},
		&conn{in: there, out: back, local: Addr(serverName), remote: Addr(clientName)}
}
