package zkfiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	snapshotMagic = "ZKSN"
	fileVersion   = 2
)

// SnapshotReader reads a snapshot in a stream: sessions and ACLs are in memory after
// [NewSnapshotReader], then come the znodes, parents before their children, then the trailer.
type SnapshotReader struct {
	// Sessions and ACLs are the tables at the beginning.
	Sessions []Session
	ACLs     map[int64][]proto.ACL

	s    *stream
	bare bool // without header, seals and trailer
	done bool // the znodes were read to their end
}

// SnapshotDigest is the digest of the tree after a transaction.
type SnapshotDigest struct {
	Zxid    proto.Zxid
	Version int32
	Value   uint64
}

// NewSnapshotReader reads a snapshot, which is not compressed any more, up to its first znode.
func NewSnapshotReader(r io.Reader) (*SnapshotReader, error) {
	s := newStream(r)
	s.header("snapshot", snapshotMagic)
	return newSnapshotReader(s, false)
}

// NewTreeReader reads sessions, ACLs and znodes as a leader sends them to a learner: like a
// snapshot without header, seals and trailer. A *bufio.Reader can be read on after the last.
func NewTreeReader(r io.Reader) (*SnapshotReader, error) {
	return newSnapshotReader(newStream(r), true)
}

func newSnapshotReader(s *stream, bare bool) (*SnapshotReader, error) {
	r := &SnapshotReader{ACLs: make(map[int64][]proto.ACL), s: s, bare: bare}
	for n := s.count("sessions"); n > 0 && s.err == nil; n-- {
		r.Sessions = append(r.Sessions, Session{proto.SessionID(s.long("a session")), s.int("a session")})
	}
	for n := s.count("ACLs"); n > 0 && s.err == nil; n-- {
		key := s.long("an ACL")
		var list []proto.ACL
		for m := s.count("entries of an ACL"); m > 0 && s.err == nil; m-- {
			perms := proto.Perms(s.int("an ACL"))
			list = append(list, proto.ACL{Perms: perms, ID: proto.ID{Scheme: s.text("an ACL"), ID: s.text("an ACL")}})
		}
		if _, twice := r.ACLs[key]; twice && s.err == nil {
			s.fail("ACL %d comes twice", key)
		}
		r.ACLs[key] = list
	}
	if s.err != nil {
		return nil, s.err
	}
	return r, nil
}

// Offset returns how many bytes have been read.
func (r *SnapshotReader) Offset() int64 { return r.s.off }

// Znodes yields the znodes. After an error nothing follows. The tree is proved complete and
// undamaged only by [SnapshotReader.Trailer].
func (r *SnapshotReader) Znodes() iter.Seq2[Znode, error] {
	return func(yield func(Znode, error) bool) {
		s := r.s
		for s.err == nil {
			at := s.off
			path := s.text("a path")
			if s.err != nil {
				break
			}
			if path == "/" {
				r.done = true
				return
			}
			z := Znode{Path: path}
			// The root is "". Two more reads follow the data, so it is copied.
			if path == "" {
				z.Path = "/"
			} else if err := proto.ValidatePath(path); err != nil {
				s.err = fmt.Errorf("%w at byte %d: %w", ErrDamaged, at, err)
				break
			}
			z.Data = bytes.Clone(s.buffer("data"))
			z.ACL = s.long("the key of an ACL")
			if b := s.take(statBytes, "a Stat"); b != nil {
				z.Stat.decode(b)
			}
			if s.err != nil {
				s.err = fmt.Errorf("znode %s: %w", strconv.Quote(z.Path), s.err)
				break
			}
			if !yield(z, nil) {
				return
			}
		}
		yield(Znode{}, s.err)
	}
}

// Trailer reads the rest after the znodes, which must have been read to their end, and verifies all
// checksums. digest is nil if there is none.
func (r *SnapshotReader) Trailer() (digest *SnapshotDigest, err error) {
	s := r.s
	switch {
	case s.err != nil:
		return nil, s.err
	case !r.done:
		return nil, errors.New("zkfiles: the znodes have not been read to their end")
	case r.bare:
		return digest, nil
	}
	r.seal("the tree")
	if r.more() {
		d := SnapshotDigest{Zxid: proto.Zxid(s.long("the digest")), Version: s.int("the digest")}
		if d.Version < DigestVersion { // written as text by early versions of 3.6
			v, err := strconv.ParseUint(s.text("the digest"), 16, 64)
			if err != nil && s.err == nil {
				s.fail("the digest is no number: %v", err)
			}
			d.Value = v
		} else {
			d.Value = uint64(s.long("the digest"))
		}
		if d.Zxid != 0 { // otherwise there was no transaction since the server started, and the value is 0
			digest = &d
		}
		r.seal("the digest")
	}
	if r.more() {
		s.long("the last zxid") // in snapshots of 3.9; it differs from the file's name only in later versions
		r.seal("the last zxid")
	}
	if r.more() {
		s.fail("something follows the end of the snapshot")
	}
	return digest, s.err
}

func (r *SnapshotReader) more() bool {
	if r.s.err != nil {
		return false
	}
	_, err := r.s.r.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		r.s.failed(err, "its end")
	}
	return err == nil
}

// seal reads the checksum of everything before it.
func (r *SnapshotReader) seal(what string) {
	s := r.s
	want := s.sum.Sum32()
	got := s.long("the checksum of " + what)
	if s.err == nil && got != int64(want) {
		s.fail("the checksum of %s is %#x, computed is %#x", what, got, want)
	}
	if end := s.text("the end of " + what); s.err == nil && end != "/" {
		s.fail("after the checksum of %s comes %q", what, end)
	}
}

// LastBytes are the last bytes of every complete snapshot. A file without them was not written to
// its end, and ZooKeeper takes the previous file.
const LastBytes = "\x00\x00\x00\x01/"

// AppendSnapshotHeader appends the part of a snapshot before its znodes. The keys of the lists are
// their indexes plus 1.
func AppendSnapshotHeader(b []byte, sessions []Session, acls [][]proto.ACL) []byte {
	b = jute.AppendInt(append(b, snapshotMagic...), fileVersion)
	return appendTables(jute.AppendLong(b, -1), sessions, acls)
}

func appendTables(b []byte, sessions []Session, acls [][]proto.ACL) []byte {
	b = jute.AppendInt(b, int32(len(sessions)))
	for _, s := range sessions {
		b = jute.AppendInt(jute.AppendLong(b, int64(s.ID)), s.TimeoutMs)
	}
	b = jute.AppendInt(b, int32(len(acls)))
	for i, list := range acls {
		b = proto.AppendACLs(jute.AppendLong(b, int64(i)+1), list)
	}
	return b
}

// Append appends a znode of a snapshot.
func (z *Znode) Append(b []byte) []byte {
	b = jute.AppendBuffer(jute.AppendString(b, strings.TrimSuffix(z.Path, "/")), z.Data) // the root is ""
	b = jute.AppendLong(b, z.ACL)
	return z.Stat.append(b)
}

// AppendTreeEnd appends the end of the znodes.
func AppendTreeEnd(b []byte) []byte { return jute.AppendString(b, "/") }

// AppendSeal appends a checksum and its end. sum is the Adler-32 of all before it, also of seals.
func AppendSeal(b []byte, sum uint32) []byte {
	return jute.AppendString(jute.AppendLong(b, int64(sum)), "/")
}

// Append appends the digest; a seal must follow.
func (d *SnapshotDigest) Append(b []byte) []byte {
	return jute.AppendLong(jute.AppendInt(jute.AppendLong(b, int64(d.Zxid)), d.Version), int64(d.Value))
}

// AppendLastZxid appends the last zxid; a seal must follow.
func AppendLastZxid(b []byte, z proto.Zxid) []byte { return jute.AppendLong(b, int64(z)) }
