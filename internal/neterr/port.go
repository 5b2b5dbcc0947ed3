package neterr

import (
	"errors"
	"fmt"
	"strings"
)

// MemberMagic begins a server's stream to another member.
const MemberMagic = "gozkdNET"

// WrongPort says what a port is for. It is the error of one that is not for ZooKeeper's clients.
type WrongPort string

// What listens at a port of a server.
const (
	ForClients WrongPort = "this port is for ZooKeeper's clients"
	ForHTTP    WrongPort = "this port speaks HTTP"
	ForMembers WrongPort = "this port is for the other members"
	ForOthers  WrongPort = "this port speaks another protocol"
	ForTLS     WrongPort = "this port speaks TLS"
	Away       WrongPort = "this server is not part of a quorum"
)

// Error returns the port's purpose, and what to do instead.
func (p WrongPort) Error() string {
	switch p {
	case ForTLS:
		return string(p) + ": add --tls, and --cacert FILE if its certificate is not from a public authority"
	case Away:
		return string(p) + ": name another server, or try again later"
	}
	return string(p) + ": name the port for ZooKeeper's clients, clientPort in its zoo.cfg"
}

// Advised returns err with advice, if there is any. A WrongPort stands alone: what such a port
// answered is noise.
func Advised(err, advice error) error {
	switch {
	case advice == nil:
		return err
	case errors.As(advice, new(WrongPort)):
		return advice
	}
	return fmt.Errorf("%w; %w", err, advice)
}

// AsWrongPort returns the error of a port that answers a client so, or nil. Four bytes are enough.
func AsWrongPort(answer []byte) error {
	switch begin := string(answer); {
	case len(begin) < 4:
	case strings.HasPrefix(begin, "HTTP"), begin[0] == '<': // HTTP/0.9 has no header
		return ForHTTP
	case strings.HasPrefix(MemberMagic, begin[:4]):
		return ForMembers
	}
	return nil
}
