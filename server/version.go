package server

import "github.com/gozkd/gozkd/internal/version"

// Version is the version of this module, such as "0.1.0", or "devel" if not built from a tag.
var Version = version.Get().Number

// zooKeeperRelease is the ZooKeeper release whose protocol and semantics this server has. Clients
// derive from this version which operations they may use.
const zooKeeperRelease = "3.9.5"

// buildDate formats the date in the version line. ZooKeeper 3.6 and later writes 2006-01-02
// instead, but go-zookeeper's FLWSrvr accepts only the older, and no known client needs the newer.
const buildDate = "01/02/2006 15:04 UTC"

// versionLine returns the version in the form of ZooKeeper's "version-revision, built on date": the
// ZooKeeper release for ZooKeeper's clients, and gozkd with its version in place of the revision.
func (s *shared) versionLine() string {
	return zooKeeperRelease + "-gozkd-" + s.cfg.Version + ", built on " + version.Built().UTC().Format(buildDate)
}
