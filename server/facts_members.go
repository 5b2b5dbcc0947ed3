package server

import (
	"net"
	"strconv"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// Member is one server of an ensemble as all know it. Addresses are host:port, or empty where none is known.
type Member struct {
	ID              int
	Observer        bool // it has no vote
	PeerAddress     string
	ElectionAddress string // has no use here
	ClientAddress   string
}

// Members returns the servers of the ensemble by rising number: as it was agreed, or as this server is configured while it knows of
// no agreement. A server alone has none. The caller owns the result.
func (s *Server) Members() []Member {
	set, _ := s.ensemble()
	all := make([]Member, 0, len(set))
	for _, m := range set {
		one := Member{
			ID: int(m.ID), Observer: m.Role == serverlist.Observer, PeerAddress: m.PeerAddress(), ClientAddress: m.ClientAddress(),
		}
		if m.ElectionPort != 0 {
			one.ElectionAddress = net.JoinHostPort(m.Host, strconv.Itoa(m.ElectionPort))
		}
		all = append(all, one)
	}
	return all
}
