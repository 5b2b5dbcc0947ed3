package probe

import (
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// Settings is the part of the answer to conf about the server's identity and the members.
type Settings struct {
	// ServerID is 0 for a standalone server.
	ServerID uint64
	// ClientPort is 0 if the answer has no client port.
	ClientPort int
	// Members is empty for a standalone server.
	Members serverlist.Set
}

// ParseSettings parses the answer to conf, or the data of /zookeeper/config, which has only the
// members. It skips server lines that serverlist.Parse rejects, such as those with two addresses.
func ParseSettings(conf string) Settings {
	var s Settings
	for line := range strings.Lines(conf) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case key == "serverId":
			s.ServerID, _ = strconv.ParseUint(value, 10, 64) // 0 if the value is not a number
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
