package neterr

import "strings"

// MemberMagic begins a server's stream to another member.
const MemberMagic = "gozkdNET"

// WrongPort says what a port is for. It is the error of one that is not for ZooKeeper's clients.
type WrongPort string

// What listens at a port of a server.
const (
	ForClients WrongPort = "this port is for ZooKeeper's clients"
	ForHTTP    WrongPort = "this port speaks HTTP"
	ForMembers WrongPort = "this port is for the other members"
)

// Error returns the port's purpose, and which port to name instead.
func (p WrongPort) Error() string {
	return string(p) + ": name the port for ZooKeeper's clients, clientPort in its zoo.cfg"
}

// AsWrongPort returns the error of a port that answers a client so, or nil. Four bytes are enough.
func AsWrongPort(answer []byte) error {
	switch begin := string(answer); {
	case len(begin) < 4:
	case strings.HasPrefix(begin, "HTTP"):
		return ForHTTP
	case strings.HasPrefix(MemberMagic, begin[:4]):
		return ForMembers
	}
	return nil
}
