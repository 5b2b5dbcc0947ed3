package jepsenlite

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Kinds of records.
const (
	KindOpen  = "open"  // a handshake was answered; Refused: the session is gone
	KindReply = "reply" // a request, with its reply if there is one
	KindEvent = "event" // a watch fired
	KindClose = "close" // a connection ended; Err says how
	KindPause = "pause" // from Call to Return no member ran
	KindWell  = "well"  // from Call to Return a majority was well
)

// A Record is an event on a client's connection. The records of a connection are in the order in
// which the client received them; requests without a reply follow when the connection ends.
type Record struct {
	Seq     int64
	Kind    string
	Conn    int    // number of the connection, unique in a run
	Client  string // name within the load, such as "register-3"
	Session proto.SessionID
	Member  int // id of the server

	// Of a request: when it was sent and when its reply arrived, since the start of the run. Return
	// 0: no reply, so the request may take effect at any time or never.
	Call   time.Duration `json:",omitzero"`
	Return time.Duration `json:",omitzero"` // of other kinds: when it happened
	Xid    int32         `json:",omitzero"`
	Number int           `json:",omitzero"` // of the request on its connection, from 1
	Op     proto.OpCode  `json:",omitzero"`
	Parts  []Part        `json:",omitempty"` // one, or the parts of a multi
	Watch  bool          `json:",omitzero"`
	Synced time.Duration `json:",omitzero"` // of a read: when the sync answered right before it was sent
	// Of setWatches.
	Relative           proto.Zxid `json:",omitzero"`
	Data, Exist, Child []string   `json:",omitempty"`
	Recursive          []string   `json:",omitempty"`

	// Of a reply.
	Err  proto.ErrCode `json:",omitzero"`
	Zxid proto.Zxid    `json:",omitzero"`

	Event   proto.EventType `json:",omitzero"` // its path is that of the only part
	Timeout time.Duration   `json:",omitzero"` // of an open: the negotiated timeout
	Refused bool            `json:",omitzero"` // of an open
	Why     string          `json:",omitzero"` // of a close: WhyClient, WhyServer or WhySilence
}

// Reasons for the end of a connection.
const (
	WhyClient  = "client"  // the client closed it
	WhyServer  = "server"  // the server closed it, or died
	WhySilence = "silence" // the client gave up waiting
)

// A Part is an operation of a request with its result.
type Part struct {
	Op      proto.OpCode
	Path    string           `json:",omitzero"`
	Data    string           `json:",omitzero"`
	Version int32            `json:",omitzero"`
	Mode    proto.CreateMode `json:",omitzero"`

	Err      proto.ErrCode `json:",omitzero"` // of a part of a multi
	Made     string        `json:",omitzero"` // path of the created znode
	Got      string        `json:",omitzero"`
	Stat     proto.Stat    `json:",omitzero"`
	Children []string      `json:",omitempty"`
}

// Answered reports whether a request got its reply.
func (r *Record) Answered() bool { return r.Kind == KindReply && r.Return != 0 }

// OK reports whether a request succeeded.
func (r *Record) OK() bool { return r.Answered() && r.Err == proto.OK }

// Path returns the path of a request with a single op.
func (r *Record) Path() string {
	if len(r.Parts) == 0 {
		return ""
	}
	return r.Parts[0].Path
}

// Writes reports whether a request changes znodes if it succeeds.
func (r *Record) Writes() bool {
	info := r.Op.Info()
	return r.Kind == KindReply && info.Write && info.Path != proto.PathNone
}

// A Recorder opens connections and records the traffic on them. Safe for concurrent use.
type Recorder struct {
	// Dial connects a client to a member. Default: TCP.
	Dial func(client, address string, limit time.Duration) (net.Conn, error)
	// Handshake is how long a connection waits for the reply to its handshake. go-zookeeper would
	// wait ten times as long as for anything else: a whole round when a member is paused.
	Handshake time.Duration

	start time.Time

	mu      sync.Mutex
	seq     int64
	conns   int
	records []*Record
}

// NewRecorder returns a recorder whose time starts now.
func NewRecorder() *Recorder {
	dial := func(_, address string, limit time.Duration) (net.Conn, error) {
		return net.DialTimeout("tcp", address, limit)
	}
	return &Recorder{Dial: dial, Handshake: handshakePatience, start: time.Now()}
}

const handshakePatience = 2 * time.Second

// connect opens a connection that is recorded.
func (r *Recorder) connect(client, address string, member int, limit time.Duration) (*tap, error) {
	conn, err := r.Dial(client, address, limit)
	if err != nil {
		return nil, err
	}
	return newTap(conn, r, client, member), nil
}

// Now returns the time since the start; never 0.
func (r *Recorder) Now() time.Duration { return max(1, time.Since(r.start)) }

func (r *Recorder) nextConn() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns++
	return r.conns
}

func (r *Recorder) add(records ...*Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range records {
		r.seq++
		rec.Seq = r.seq
		r.records = append(r.records, rec)
	}
}

// Note records a state of the whole ensemble from then until now: KindPause or KindWell.
func (r *Recorder) Note(kind string, since time.Duration) {
	r.add(&Record{Kind: kind, Call: since, Return: r.Now()})
}

// Take returns the records since the last Take. The caller owns them.
func (r *Recorder) Take() []*Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	records := r.records
	r.records = nil
	return records
}

// WriteHistory writes records to a new file, a JSON object per line.
func WriteHistory(path string, records []*Record) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("jepsenlite: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for _, r := range records {
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("jepsenlite: %w", err)
		}
	}
	return w.Flush()
}
