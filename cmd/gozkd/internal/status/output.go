package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/gozkd/gozkd/internal/probe"
)

// writeOne writes the output of zkServer.sh status.
func writeOne(w io.Writer, t targets, s server) error {
	if t.config != nil {
		if _, err := fmt.Fprintf(w, "Client port found: %d. Client address: %s. Client SSL: %t.\n", t.config.ClientPort, t.config.ClientPortAddress, t.secure); err != nil {
			return err
		}
	}
	line := "Mode: " + s.state.Mode
	if s.err != nil {
		line = "Error contacting service. It is probably not running."
		if probe.Reached(s.err) {
			line = "Error contacting service. It runs, but does not serve."
		}
	}
	_, err := fmt.Fprintln(w, line)
	return err
}

// mode returns the role of the server, or why the server has no role.
func (s *server) mode() string {
	switch {
	case s.err == nil:
		return s.state.Mode
	case errors.Is(s.err, probe.ErrNotServing):
		return "not serving"
	}
	return "down"
}

// writeTable writes a line per server. For a server that does not answer, the reason stands in the
// last column, and the others are empty. For a member that gave no answer,
// the last column has the reports of the other servers about it.
func writeTable(w io.Writer, servers []server, others []probe.Peer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	secured := slices.ContainsFunc(servers, func(s server) bool { return s.secure > 0 })
	last := "VERSION"
	if secured {
		last += "\tLINKS WITH TLS"
	}
	fmt.Fprintln(table, "SERVER\tMODE\tZXID\tCONNECTIONS\tOUTSTANDING\tLATENCY ms min/avg/max\tZNODES\t"+last)
	for i := range servers {
		s := &servers[i]
		fmt.Fprintf(table, "%s\t%s\t", s.address, s.mode())
		st := &s.state
		if s.err != nil {
			fmt.Fprintf(table, "\t\t\t\t\t%s\n", probe.Cause(s.err))
			continue
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d/%s/%d\t%d\t%s", st.Zxid, st.Connections, st.Outstanding,
			st.LatencyMs.Min, strconv.FormatFloat(st.LatencyMs.Avg, 'f', -1, 64), st.LatencyMs.Max, st.Znodes, st.Version)
		if secured && s.links > 0 {
			fmt.Fprintf(table, "\t%d of %d", s.secure, s.links)
		}
		fmt.Fprintln(table)
	}
	for _, p := range others {
		fmt.Fprintf(table, "server.%d\t%s\t\t\t\t\t\tas the others see it", p.ID, p.Role)
		if p.Lag != nil {
			fmt.Fprintf(table, ", lag %d", *p.Lag)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// serverJSON is a server in the JSON output. Unknown values are missing.
type serverJSON struct {
	Server string `json:"server"`
	Mode   string `json:"mode"`
	Error  string `json:"error,omitempty"`
	Zxid   string `json:"zxid,omitempty"`
	*probe.State
	// PeerLinks are the connections to and from other servers.
	PeerLinks    *int64 `json:"peer_links,omitempty"`
	PeerLinksTLS *int64 `json:"peer_links_tls,omitempty"`
}

// writeJSON writes {"ok":…,"servers":[…],"others":[…],"data_status":…,"archive_status":…,
// "problems":[…]}.
func writeJSON(
	w io.Writer, servers []server, others []probe.Peer, data, archive string, problems []string,
) error {
	list := make([]serverJSON, len(servers))
	for i := range servers {
		s := &servers[i]
		list[i] = serverJSON{Server: s.address, Mode: s.mode()}
		if s.err != nil {
			list[i].Error = probe.Cause(s.err)
			continue
		}
		list[i].State, list[i].Zxid = &s.state, s.state.Zxid.String()
		if s.links > 0 {
			list[i].PeerLinks, list[i].PeerLinksTLS = &s.links, &s.secure
		}
	}
	if problems == nil {
		problems = []string{}
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(struct {
		OK         bool         `json:"ok"`
		Servers    []serverJSON `json:"servers"`
		Others     []probe.Peer `json:"others"`
		DataStatus string       `json:"data_status,omitempty"`    // the data are near their limit
		Archive    string       `json:"archive_status,omitempty"` // the archive is closed to this ensemble
		Problems   []string     `json:"problems"`
	}{len(problems) == 0, list, others, data, archive, problems})
}
