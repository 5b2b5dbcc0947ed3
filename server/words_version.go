package server

import (
	"os"
	"runtime/debug"
	"time"
)

// speaks is the ZooKeeper release whose protocol and semantics this server has. Clients choose by it what they may ask.
const speaks = "3.9.5"

// buildDate is how the version line dates the build. ZooKeeper 3.6 and later writes 2006-01-02 instead; the form before
// is the one that go-zookeeper's FLWSrvr insists on, and no client is known that reads the newer one.
const buildDate = "01/02/2006 15:04 UTC"

// versionLine says what the server is, in the form of ZooKeeper's "version-revision, built on date": for ZooKeeper's
// clients the release that it speaks, for people the name and version of the program in place of the revision.
func (s *Server) versionLine() string {
	return speaks + "-gozkd-" + s.cfg.Version + ", built on " + built().UTC().Format(buildDate)
}

// built returns the time of the commit that the program was built of, or else that of its file, or else 1970.
func built() time.Time {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key != "vcs.time" {
				continue
			}
			if t, err := time.Parse(time.RFC3339, setting.Value); err == nil {
				return t
			}
		}
	}
	if name, err := os.Executable(); err == nil {
		if file, err := os.Stat(name); err == nil {
			return file.ModTime()
		}
	}
	return time.Unix(0, 0)
}
