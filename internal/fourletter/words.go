package fourletter

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"github.com/gozkd/gozkd/server/facts"
)

// Server is the part of a server that the words need: its facts and, for the words crst and srst,
// two resets. The methods are those of *server.Server.
type Server interface {
	NotServing() error
	Status() facts.Status
	Stats() facts.Stats
	Connections() []facts.Connection
	Sessions() []facts.Session
	Ephemerals() []facts.SessionPaths
	Expiries() []facts.Expiry
	LocalExpiries() []facts.Expiry
	Watches() []facts.SessionPaths
	WatchCounts() (connections, paths, watches int)
	ZnodeKinds() []facts.ZnodeKind
	Settings() []facts.Setting
	Membership() string
	Environment() []facts.Setting
	DirSizes() (data, log int64)
	Digest() (zxid int64, digest uint64)
	Monitor() []facts.Value
	Hot() facts.HotSpots
	TraceMask() int64
	ResetConnectionStats()
	ResetStats()
}

// TelnetClose holds the bytes that telnet sends when its user leaves: IAC IP IAC DO. They are read
// like a word and have no answer. As the length of a request they would be negative, and close the
// connection too, but with a line in the log.
const TelnetClose = "\xff\xf4\xff\xfd"

// bufferBytes is how much of an answer is collected before it is sent. Clients such as kazoo read
// only once, so an answer that fits must be one write. A longer one is never in memory as a whole.
const bufferBytes = 64 << 10

const notServing = "This ZooKeeper instance is not currently serving requests"

// Is reports whether the first four bytes of a connection are a four-letter word.
func Is(word string) bool {
	return slices.Contains([]string{
		"ruok", "srvr", "stat", "conf", "cons", "crst", "srst", "dump", "envi", "wchs", "wchc", "wchp", "dirs", "isro",
		"gtmk", "stmk", "hash", "mntr", "hotp", "kind", TelnetClose,
	}, word)
}

// IsLong reports whether the answer to a word grows with the connections, watches or znodes.
func IsLong(word string) bool {
	return slices.Contains([]string{"stat", "cons", "dump", "wchc", "wchp", "kind"}, word)
}

// Allowed reports whether a whitelist contains the word. srvr is always allowed.
func Allowed(whitelist []string, word string) bool {
	return word == "srvr" || slices.Contains(whitelist, "*") || slices.Contains(whitelist, word)
}

// NewWriter returns a writer for Write.
func NewWriter(to io.Writer) *bufio.Writer { return bufio.NewWriterSize(to, bufferBytes) }

// Refuse writes the answer to a word that is not allowed.
func Refuse(w *bufio.Writer, word string) {
	say(w, "%s is not executed because it is not in the whitelist.\n", word)
}

// Write writes the answer to an allowed word that came over the connection with the number asker.
// The mask of stmk was set before. Errors are sticky in w: its Flush returns them.
func Write(w *bufio.Writer, word string, s Server, asker int64) {
	switch word {
	case "ruok":
		say(w, "imok")
		return
	case "gtmk", "stmk":
		say(w, "%d", s.TraceMask())
		return
	case "envi":
		say(w, "Environment:\n")
		writeSettings(w, s.Environment())
		return
	}
	st := s.Status()
	serving, readOnly := s.NotServing() == nil, st.Mode == facts.ReadOnly
	switch word {
	case "srvr", "stat", "isro":
		// By these, scripts and probes ask whether clients can be sent here. They cannot while no
		// leader is known, although connected clients are kept for a while and their reads are
		// answered: another leader may be elected soon.
		serving = serving && (st.Serving || readOnly)
	}
	switch {
	case word == "isro" && serving && readOnly:
		say(w, "ro")
	case word == "isro" && serving && !st.LeavesClients: // read-only clients move to where this is rw
		say(w, "rw")
	case word == "isro":
		say(w, "null")
	case serving:
		writeServing(w, word, s, asker)
	case word == "hash": // in ZooKeeper too, this answer has no line end
		say(w, notServing)
	default:
		say(w, notServing+"\n")
	}
}

// writeServing writes the answers that only a server gives that serves clients.
func writeServing(w *bufio.Writer, word string, s Server, asker int64) {
	switch word {
	case "srvr":
		st := s.Stats()
		writeVersion(w, &st)
		writeStats(w, &st)
	case "stat":
		st := s.Stats()
		writeVersion(w, &st)
		say(w, "Clients:\n")
		writeConnections(w, s, asker, false)
		say(w, "\n")
		writeStats(w, &st)
	case "conf":
		writeSettings(w, s.Settings())
		if members := s.Membership(); members != "" {
			say(w, "membership: \n%s", members) // without a line end, as in ZooKeeper
		}
	case "cons":
		writeConnections(w, s, asker, true)
		say(w, "\n")
	case "crst":
		s.ResetConnectionStats()
		say(w, "Connection stats reset.\n")
	case "srst":
		s.ResetStats()
		say(w, "Server stats reset.\n")
	case "dump":
		writeDump(w, s)
	case "wchs":
		conns, paths, watches := s.WatchCounts()
		say(w, "%d connections watching %d paths\nTotal watches:%d\n", conns, paths, watches)
	case "wchc":
		writeWatchesByConn(w, s)
	case "wchp":
		writeWatchesByPath(w, s)
	case "dirs":
		data, log := s.DirSizes()
		say(w, "datadir_size: %d\nlogdir_size: %d\n", data, log)
	case "hash":
		zxid, digest := s.Digest()
		say(w, "%x: %d\n", uint64(zxid), int64(digest)) // signed, as ZooKeeper's is a Java long
	case "mntr":
		writeMonitor(w, s)
	case "hotp":
		say(w, "%s\n", s.Hot())
	case "kind":
		writeKinds(w, s)
	}
}

// say writes to an answer. Errors are sticky in the writer.
func say(w *bufio.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
