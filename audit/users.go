package audit

import (
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// users joins the names of identities as ZooKeeper does, without empty names and without the scheme
// super. A connection's identities are in ZooKeeper's order already.
func users(ids []proto.ID) string {
	var names []string
	for _, id := range ids {
		if n := id.User(); strings.TrimSpace(n) != "" && id.Scheme != "super" {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}
