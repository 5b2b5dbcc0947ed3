package main

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// peerAttacks use the ports for the other members, in the formats of docs/reference/formats.md.
func peerAttacks() []*attack {
	list := []*attack{
		{name: "peer-garbage", what: "random bytes, and random frames after a hello", run: peerGarbage},
		{name: "peer-forward", what: "forwarded requests that are no requests", run: peerFrames(forwardFrames)},
		{name: "peer-commit", what: "heartbeats that commit entry 2^40", run: peerFrames(commitFrames)},
		{name: "peer-vote", what: "requests for a vote in term 2^64-1", run: peerFrames(voteFrames)},
		{name: "peer-append", what: "appends that replace the whole log", run: peerFrames(appendFrames)},
		{name: "peer-hello", what: "hellos, and questions whose a connection is, 12 threads", run: peerHello},
		{name: "peer-partial", what: "1,500 partial hellos, and 2 MB of frames of 300 MB", run: peerPartial},
	}
	for _, a := range list {
		a.ensemble = true
	}
	return list
}

// Kinds of the first message between members.
const (
	helloFrames = 1 // frames will follow
	helloAsks   = 7 // are you making the connection with this nonce?
)

// hello returns the first message on a connection between two members.
func hello(kind uint32, from, to int, contents []byte) []byte {
	b := append([]byte("gozkdNET"), 1, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = binary.LittleEndian.AppendUint64(b, uint64(from))
	b = binary.LittleEndian.AppendUint64(b, uint64(to))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(contents)))
	sum := crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, contents)
	return append(binary.LittleEndian.AppendUint32(b, sum), contents...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame returns a frame between members.
func frame(typ uint32, payload []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, typ)
	sum := crc32.Update(crc32.Checksum(b, castagnoli), castagnoli, payload)
	return append(binary.LittleEndian.AppendUint32(b, sum), payload...)
}

// uvarints returns the encoding of numbers.
func uvarints(numbers ...uint64) (b []byte) {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// unknownEnsemble is the content of a hello of a member without state: the ensemble is not known,
// and it supports every feature level.
var unknownEnsemble = uvarints(0, 1, 100, 1, 0)

// extensionMagic ends the extension of a hello, which has extensionBytes.
const (
	extensionMagic = "gozkdEXT"
	extensionBytes = 57
)

// extension returns the extension of a hello, with a nonce of this connection and without a proof.
// flags 2: the caller says that it has a secret.
func extension(flags byte) []byte {
	b := make([]byte, 0, extensionBytes)
	b = append(b, flags)
	b = binary.LittleEndian.AppendUint64(b, rand.Uint64())
	b = binary.LittleEndian.AppendUint64(b, rand.Uint64())
	b = append(b, make([]byte, 32)...)
	return append(b, extensionMagic...)
}

// link is a connection to a member under another member's id.
type link struct {
	net.Conn
	from, to int
	theirs   []byte // the content of the member's hello; nil: it accepted nobody
}

// connectAs calls f with a connection to a member under the id from. The contents of the hello are
// those that the member itself tells, if it tells them to a member without state. In turn the
// caller is one of a version without extensions, one without a secret, and one that claims to have
// a secret.
func (a *attacker) connectAs(from, to int, f func(l *link)) error {
	var more []byte
	if n := a.dialed.Load() % 3; n > 0 {
		more = extension(byte(2 * (n - 1)))
	}
	theirs, conn, err := a.greet(from, to, append(slices.Clone(unknownEnsemble), more...))
	if err == nil {
		_ = conn.Close() // the next connection knows more
		if bytes.HasSuffix(theirs, []byte(extensionMagic)) {
			theirs = theirs[:max(0, len(theirs)-extensionBytes)]
		}
		_, conn, err = a.greet(from, to, append(slices.Clone(theirs), more...))
	}
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // whatever was sent is sent
	a.breach("accepted as a member")
	f(&link{conn, from, to, theirs})
	return nil
}

// greet connects, sends a hello, and returns the content of the hello that accepts it.
func (a *attacker) greet(from, to int, contents []byte) (theirs []byte, conn net.Conn, err error) {
	nc, err := a.dial(a.Peers[to-1])
	if err != nil {
		return nil, nil, err
	}
	err = must.Try(func() {
		must.Do(nc.SetDeadline(time.Now().Add(2 * time.Second)))
		must.Get(nc.Write(hello(helloFrames, from, to, contents)))
		var head [40]byte
		must.Get(io.ReadFull(nc, head[:]))
		const accepted, maxHello = 3, 64 << 10
		n := binary.LittleEndian.Uint32(head[32:])
		if string(head[:8]) != "gozkdNET" || n > maxHello || binary.LittleEndian.Uint32(head[12:]) != accepted {
			must.Failf("member %d accepted no hello", to)
		}
		theirs = make([]byte, n)
		must.Get(io.ReadFull(nc, theirs))
	})
	if err != nil {
		_ = nc.Close() // the earlier error says more
	}
	return theirs, nc, err
}

// pairs calls f for each ordered pair of members, in turn.
func (a *attacker) pairs(f func(from, to int)) {
	for to := range a.Peers {
		for from := range a.Peers {
			if from != to {
				f(from+1, to+1)
			}
		}
	}
}

// peerFrames returns an attack that sends frames under every member's id to every other, over and
// over.
func peerFrames(frames func(r *rand.Rand, l *link) [][]byte) func(a *attacker) {
	return func(a *attacker) {
		a.ready()
		a.each(1, func(round int) {
			r := rand.New(rand.NewPCG(uint64(round), 3))
			a.pairs(func(from, to int) {
				_ = a.connectAs(from, to, func(l *link) { // an error is a refusal
					for _, payload := range frames(r, l) {
						if _, err := l.Write(frame(1, payload)); err != nil {
							break
						}
					}
					a.sleep(50 * time.Millisecond)
				})
			})
			a.sleep(200 * time.Millisecond)
		})
	}
}

// Kinds of frames between members.
const (
	frameRaft    = 1
	frameForward = 2
)

// raftMessage returns a message of raft: pairs of field number and value.
func raftMessage(fields ...uint64) []byte {
	b := []byte{frameRaft}
	for i := 0; i < len(fields); i += 2 {
		b = binary.AppendUvarint(binary.AppendUvarint(b, fields[i]<<3), fields[i+1])
	}
	return b
}

// Fields and types of raft's messages.
const (
	fieldType, fieldTo, fieldFrom, fieldTerm, fieldLogTerm, fieldIndex, fieldEntries, fieldCommit, fieldContext = 1, 2, 3, 4, 5, 6, 7, 8, 12

	msgApp, msgVote, msgHeartbeat, msgTimeoutNow, msgPreVote = 3, 5, 8, 14, 17
)

// anyTerms are terms one of which is that of the ensemble or the next one.
var anyTerms = []uint64{1, 2, 3, 4, 5, 6, 8, 10, 15, 20}

func commitFrames(_ *rand.Rand, l *link) (payloads [][]byte) {
	for _, term := range anyTerms {
		payloads = append(payloads, raftMessage(fieldType, msgHeartbeat, fieldTo, uint64(l.to), fieldFrom, uint64(l.from), fieldTerm, term, fieldCommit, 1<<40))
	}
	return payloads
}

func appendFrames(_ *rand.Rand, l *link) (payloads [][]byte) {
	for _, term := range anyTerms {
		b := raftMessage(fieldType, msgApp, fieldTo, uint64(l.to), fieldFrom, uint64(l.from), fieldTerm, term, fieldLogTerm, 0, fieldIndex, 0, fieldCommit, 5)
		for i := range uint64(5) {
			entry := uvarints(2<<3, term, 3<<3, i+1, 4<<3|2, 7)
			entry = append(entry, "garbage"...)
			b = append(append(b, uvarints(fieldEntries<<3|2, uint64(len(entry)))...), entry...)
		}
		payloads = append(payloads, b)
	}
	return payloads
}

// forwardFrames continues the stream of the member, and begins new ones.
func forwardFrames(r *rand.Rand, l *link) (payloads [][]byte) {
	incarnation := uint64(1)
	numbers := l.theirs
	next := func() uint64 {
		v, n := binary.Uvarint(numbers)
		numbers = numbers[max(n, 0):]
		return v
	}
	for range 5 {
		next() // the ensemble and the levels
	}
	for range min(next(), 300) {
		if server, inc := next(), next(); server == uint64(l.from) {
			incarnation = inc
		}
	}
	garbage := make([]byte, 40)
	for i := range garbage {
		garbage[i] = byte(r.Uint32())
	}
	for _, first := range []uint64{1, 2, 10, 100, 1000} {
		for inc := incarnation; inc < incarnation+3; inc++ {
			b := append([]byte{frameForward}, uvarints(uint64(l.from), inc, first, 2, 0, uint64(len(garbage)))...)
			payloads = append(payloads, append(b, garbage...))
		}
	}
	return payloads
}

func voteFrames(_ *rand.Rand, l *link) (payloads [][]byte) {
	const forced = "CampaignTransfer" // raft answers such a vote even if it has a leader
	for _, typ := range []uint64{msgPreVote, msgVote, msgTimeoutNow, msgHeartbeat} {
		b := raftMessage(fieldType, typ, fieldTo, uint64(l.to), fieldFrom, uint64(l.from), fieldTerm, 1<<64-1, fieldLogTerm, 1<<62, fieldIndex, 1<<62)
		b = append(b, uvarints(fieldContext<<3|2, uint64(len(forced)))...)
		payloads = append(payloads, append(b, forced...))
	}
	return payloads
}

func peerGarbage(a *attacker) {
	a.ready()
	ports := slices.Concat(a.Peers, a.Elections)
	a.each(8, func(i int) {
		r := rand.New(rand.NewPCG(uint64(i), 4))
		for a.ctx.Err() == nil {
			b := make([]byte, 1+r.IntN(4096))
			for k := range b {
				b[k] = byte(r.Uint32())
			}
			if i%2 == 0 {
				to := 1 + r.IntN(len(a.Peers))
				_ = a.connectAs(1+to%len(a.Peers), to, func(l *link) { // an error is a refusal
					b[0] = byte(1 + r.IntN(7)) // a kind that exists
					if _, err := l.Write(frame(1, b)); err == nil {
						a.pause()
					}
				})
				a.pause()
				continue
			}
			a.withConn(ports[r.IntN(len(ports))], 0, func(nc *net.TCPConn) {
				_, _ = nc.Write(b) // the server may close the connection earlier
				a.pause()
			})
		}
	})
}

func peerHello(a *attacker) {
	a.ready()
	type pair struct{ from, to int }
	var all []pair
	a.pairs(func(from, to int) { all = append(all, pair{from, to}) })
	a.each(len(all), func(i int) {
		for a.ctx.Err() == nil {
			_ = a.connectAs(all[i].from, all[i].to, func(*link) {}) // an error is a refusal
		}
	})
	a.each(len(all), func(i int) {
		for a.ctx.Err() == nil {
			a.withConn(a.Peers[all[i].to-1], 0, func(nc *net.TCPConn) {
				_, _ = nc.Write(hello(helloAsks, all[i].from, all[i].to, make([]byte, 16))) // refused, or not
				_, _ = nc.Read(make([]byte, 64))                                            // the answer does not matter
			})
		}
	})
}

func peerPartial(a *attacker) {
	a.ready()
	a.each(1500, func(i int) {
		to := 1 + i%len(a.Peers)
		a.withConn(a.Peers[to-1], 0, func(nc *net.TCPConn) {
			h := hello(helloFrames, 1+to%len(a.Peers), to, unknownEnsemble)
			if _, err := nc.Write(h[:1+i%(len(h)-1)]); err == nil {
				_, _ = nc.Read(make([]byte, 1)) // until the member closes the connection or the attack ends
			}
		})
		a.sleep(100 * time.Millisecond)
	})
	large := append(binary.LittleEndian.AppendUint32(nil, 300<<20), 1, 0, 0, 0, 0, 0, 0, 0)
	large = append(large, make([]byte, 2<<20)...)
	a.each(6, func(i int) {
		to := 1 + i%len(a.Peers)
		_ = a.connectAs(1+to%len(a.Peers), to, func(l *link) { // an error is a refusal
			if _, err := l.Write(large); err == nil {
				a.sleep(time.Second)
			}
		})
	})
}
