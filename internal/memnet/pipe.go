package memnet

import "net"

// Pipe returns both ends of a connection outside of any network. The connection has no latency, and
// can't be cut or torn. Unlike net.Pipe it is buffered (M3) and closes like TCP (M5). The names are
// the addresses of the ends: clientName is the RemoteAddr of the server's end.
func Pipe(clientName, serverName string) (client, server net.Conn) {
	there, back := newStream(link{}, linkState{}), newStream(link{}, linkState{})
	return &conn{in: back, out: there, local: Addr(clientName), remote: Addr(serverName)},
		&conn{in: there, out: back, local: Addr(serverName), remote: Addr(clientName)}
}
