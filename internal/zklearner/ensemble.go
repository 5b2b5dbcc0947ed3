package zklearner

import (
	"strings"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/serverlist"
)

// Ensemble lists the voters of the source.
type Ensemble struct {
	Voters []Voter
	// Groups: the configuration has groups or weights, so that a majority is not what decides.
	Groups bool
}

// Voter is a voting server of the source.
type Voter struct {
	Name     string   // server.N
	Election []string // the host:port for elections, on which a running server listens; none if unknown
}

// maxVoters bounds the voters: a server's number is below 256.
const maxVoters = 256

// maxServerLine bounds a line in bytes: the time to parse one grows with its addresses squared.
const maxServerLine = 4096

// parseEnsemble reads the server lines that a leader sends.
func parseEnsemble(text string) Ensemble {
	var e Ensemble
	for key, value := range serverlist.Lines(text) {
		switch {
		case strings.HasPrefix(key, "group."), strings.HasPrefix(key, "weight."):
			e.Groups = true
		case strings.HasPrefix(key, "server.") && len(e.Voters) < maxVoters:
			if len(key)+len(value) > maxServerLine {
				e.Voters = append(e.Voters, Voter{Name: "a server line that is too long"})
				continue
			}
			m, err := serverlist.Parse(key, value)
			v := Voter{Name: printable.Text(key)}
			switch {
			case err == nil && m.Role == serverlist.Observer:
				continue
			case err == nil && m.ElectionAddress() != "":
				v.Election = strings.Split(m.ElectionAddress(), serverlist.AddressSeparator)
			}
			e.Voters = append(e.Voters, v)
		}
	}
	return e
}

// Blocking returns how many voters every quorum has at least one of: without these nothing commits,
// and every committed transaction is in one of their logs. It is 0 if the voters are unknown.
func (e Ensemble) Blocking() int {
	if e.Groups {
		return len(e.Voters)
	}
	return (len(e.Voters) + 1) / 2
}
