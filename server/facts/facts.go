package facts

import (
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/printable"
)

// Modes of a server, as srvr and mntr name them.
const (
	Standalone = "standalone"
	Leader     = "leader"
	Follower   = "follower"
	Observer   = "observer"
	ReadOnly   = "read-only" // not in touch with a leader, and serves those who accept that
)

// Status is a server's summary of itself.
type Status struct {
	Serving bool // clients are answered, and their writes carried out
	// CatchingUp: this server has found a leader, and serves nobody before it has applied the
	// entries that were committed then. A server that serves may lag, and this stays false.
	CatchingUp bool
	Mode       string // Standalone, Leader, Follower, Observer or ReadOnly; "" before the data is open
	Member     int    // this server's number; 255 stands for the number 0
	Leader     int    // the leader's Member as far as this server knows, 0 for none; a standalone server leads itself
	NoLeader   string // the voters that are missing for one, since when, and what to do; "": it is known
	Zxid       int64  // of the last change that is applied on this server
	// Whole reports whether every member that should vote does, and, as far as the leader knows, no
	// member has joined without data. A member that joins without data is admitted as a learner
	// first, as can happen to the last member when a new ensemble is formed. Until that learner
	// votes, the ensemble tolerates fewer failures.
	Whole bool
	// Standby: this server follows an archive instead of a leader, and serves only reads.
	Standby bool
	// LeavesClients: this server leads, and refuses clients because the other members serve them.
	LeavesClients bool
}

// Stats are the values of srvr and stat. Counts and latencies are since the start or srst. Znodes
// includes the root twice, as in ZooKeeper.
type Stats struct {
	Version                    string // the version line, with the date of the build
	Mode                       string // Standalone, Leader, Follower, Observer or ReadOnly; "" before the data is open
	Zxid                       int64  // of the last change that is applied on this server
	Znodes, Ephemerals         int
	Sessions                   int   // of the whole ensemble
	DataBytes                  int64 // of all paths and data, approximately
	LongestListBytes           int   // of a znode's children, as a reply, since the state was loaded
	Connections                int   // of clients
	Outstanding                int   // writes under way
	Received, Sent             int64 // packets
	MinLatencyMs, MaxLatencyMs int64
	AvgLatencyMs               float64
	ReplyBytes, ProposalBytes  Sizes // proposals are counted on the leader
	Uptime                     time.Duration
	Growth                     Growth
	Crowd                      Crowd
	Fenced                     string // of ArchiveStats
	Certificates               string // of this server that end soon or have expired, and what to do
	Outside                    string // why this server is not a member of its ensemble, and what to do; "": it is
}

// Crowd says how much memory the connections of a server's clients and their watches take, and may
// take, in bytes. See docs/guide/capacity.md.
type Crowd struct {
	Bytes, Limit int64
	Refusing     bool // there was no memory for another connection
}

// String returns the full resource and the remedy, or "" if the server is not Refusing.
func (c Crowd) String() string {
	if !c.Refusing {
		return ""
	}
	return fmt.Sprintf("connections and watches take %s of %s: new sessions are refused here; "+
		"close idle clients, add servers, or give this server more memory",
		printable.Size(c.Bytes), printable.Size(c.Limit))
}

// Growth says how large the data may become. See docs/guide/capacity.md.
type Growth struct {
	// Weight is the memory that the data and the sessions take, in bytes, as all servers of the
	// ensemble compute it. At Limit, requests that add data are refused. 0: no limit yet, because
	// it is far away.
	Weight, Limit int64
	Full          bool   // they are refused
	Cause         string // decides about Limit: none, memory or disk
	Server        int    // whose memory or disk decides; -1: the disks of a majority
	Resumes       int64  // the weight below which they are accepted again, once they are refused
	// Largest are the heaviest children of the root, the heaviest first, as they were LargestAge
	// ago. It is nil unless the data are Near.
	Largest    []Subtree
	LargestAge time.Duration
}

// Subtree is the weight of a child of the root and of everything below it.
type Subtree struct {
	Path   string
	Weight int64
}

// Near reports whether the data take so much of Limit that somebody should care: 80 percent.
func (g Growth) Near() bool { return g.Limit != 0 && (g.Full || g.Weight/80 >= g.Limit/100) }

// String returns the full resource, the server that decides, for how long, the heaviest subtrees
// and the remedy; or "" if the data are not Near.
func (g Growth) String() string {
	if !g.Near() {
		return ""
	}
	how, until := "data limit reached", "growth is refused until below "+printable.Size(g.Resumes)
	remedy := "; delete znodes, or "
	switch {
	case !g.Full:
		how, until = "data near their limit", "at the limit growth is refused"
	case g.Resumes < leastWeight:
		until, remedy = "growth is refused, because that leaves no room for data", "; "
	}
	who, disk := fmt.Sprintf("the %s of server %d decides", g.Cause, g.Server), "that disk"
	if g.Server < 0 {
		who, disk = "the disks of most servers decide", "these disks"
	}
	text := fmt.Sprintf("%s: %s of %s; %s; %s", how, printable.Size(g.Weight), printable.Size(g.Limit), who, until)
	ago := ""
	if g.LargestAge >= 2*time.Second {
		ago = fmt.Sprintf(" %v ago", g.LargestAge.Truncate(time.Second))
	}
	for i, s := range g.Largest {
		path := printable.Shortened(printable.Text(s.Path), maxPath)
		text += [...]string{"; largest subtrees" + ago + ": ", ", "}[min(i, 1)] + path + " " + printable.Size(s.Weight)
	}
	if g.Cause == "disk" {
		return text + remedy + "make room on " + disk + ", lower gozkd.diskReserveKB if it is set, or raise the limit of file sizes (ulimit -f)"
	}
	return text + remedy + "raise gozkd.dataLimitKB or the memory of that server"
}

// leastWeight is more than an empty state weighs, in bytes: nothing can be deleted to get below it.
const leastWeight = 1 << 10

// maxPath bounds the paths in texts, in bytes.
const maxPath = 100

// Sizes are the last, the smallest and the largest of some lengths in bytes. All are -1 if no
// length was recorded, as in ZooKeeper.
type Sizes struct{ Last, Min, Max int64 }

// Connection describes a client's connection at one moment.
type Connection struct {
	ID             int64  // rises in the order in which the server accepted its connections
	Remote         string // the client's address
	Secure         bool   // it came to the secure port
	TLS            bool   // it is encrypted, also on a port for both
	Since          time.Time
	Identities     []string      // scheme:id, without that of the address; of digest the part before the colon
	Heard          time.Time     // when its last bytes came
	Session        int64         // 0: none yet
	Timeout        time.Duration // of the session
	Expires        time.Time     // when the server closes the connection if nothing more arrives; a whole tick
	Queued         int           // requests that wait
	Writing        bool          // replies wait for the client to read
	Received, Sent int64         // packets
	LastOp         string        // the request of the last reply, as the cons word abbreviates it; NA: there is none, or it has no name
	LastXid        int32         // the client's number of that request; negative: it has none
	LastZxid       int64         // of that reply; -1: none
	LastReply      time.Time     // zero: none
	LastLatency    time.Duration
	MinMs, MaxMs   int64 // latencies of all replies
	AvgMs          float64
}

// InterestOps returns the operations that the server waits for on the connection, with the numbers
// of java.nio: 1 is reading, 4 is writing.
func (c *Connection) InterestOps() int {
	if c.Writing {
		return 1 | 4
	}
	return 1
}

// Session describes a session as the reporting server knows it.
type Session struct {
	ID         int64
	Timeout    time.Duration
	Connected  bool // to this server
	Ephemerals int
}

// SessionPaths lists the paths that belong to a session.
type SessionPaths struct {
	Session int64
	Paths   []string // sorted
}

// Watch is a watch of a session on a path.
type Watch struct {
	Session int64
	Path    string
	Kinds   []string // data, children, persistent, recursive
}

// Expiry lists the sessions that expire at the same moment if their clients stay silent.
type Expiry struct {
	At       time.Time
	Sessions []int64 // in ascending order
}

// MemberStatus describes a server of an ensemble as the membership records it. Addresses are
// host:port, or empty if unknown.
type MemberStatus struct {
	ID              int  // the number; 255 stands for the number 0
	Observer        bool // it has no vote
	PeerAddress     string
	ElectionAddress string // not used by this program
	ClientAddress   string
	// LinkTo and LinkFrom are the protocols of this server's connections to and from the member:
	// plain, or the version of TLS, such as TLS 1.3. Empty: there is no connection.
	LinkTo, LinkFrom string
}

// ZnodeKind names a znode that the server may delete: a container or one with a time to live.
type ZnodeKind struct {
	Path string
	TTL  time.Duration // 0: a container
}

// Setting is a line of the conf word.
type Setting struct{ Key, Value string }
