package probe

import (
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// Settings is what conf says of who the server is, and of who the others are.
type Settings struct {
	// ServerID is the server's number; 0 if it is standalone.
	ServerID uint64
	// ClientPort is where the server listens for clients; 0 if it does not say so.
	ClientPort int
	// Members are the server lines; empty if it is standalone.
	Members serverlist.Set
}

// ParseSettings reads an answer to conf, or the data of /zookeeper/config, which has the members only. Server lines that
// members.Parse does not take, such as those with two addresses, are left out.
func ParseSettings(conf string) Settings {
	var s Settings
	for line := range strings.Lines(conf) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case key == "serverId":
			s.ServerID, _ = strconv.ParseUint(value, 10, 64) // what is no number is no id
		case key == "clientPort":
			s.ClientPort = int(max(0, number(value)))
		case strings.HasPrefix(key, "server."):
			if m, err := serverlist.Parse(key, value); err == nil {
				s.Members = s.Members.With(m)
			}
		}
	}
	return s
}
