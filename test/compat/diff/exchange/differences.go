package exchange

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Difference is a deliberate deviation from ZooKeeper. docs/reference/differences.md explains it
// under the same id.
type Difference struct {
	ID     string
	Reason string
	// Allows reports whether m, a mismatch of a (ZooKeeper) and b (gozkd), is this difference. nil
	// if no sequence can show it; then Avoided says why.
	Allows  func(a, b *Transcript, m *Mismatch) bool
	Avoided string
	// Diverges: the servers' trees differ from there on, so the rest of the sequence proves
	// nothing.
	Diverges bool
	// Gaps: the servers may use zxids for invisible transactions. Zxids that only show progress are
	// then compared by the last visible change up to them.
	Gaps bool
}

// Differences lists all deliberate deviations in the client protocol.
func Differences() []Difference {
	return []Difference{
		{
			ID:      "ttl-crash",
			Reason:  "ZooKeeper logs a createTTL of a mode without TTL and with a negative ttl, and never starts again; gozkd answers -8",
			Avoided: "no sequence has one: it would end the ZooKeeper that is asked",
		},
		{
			ID:      "delete-container",
			Reason:  "ZooKeeper 3.9 lets any client delete any childless znode with deleteContainer, whatever its ACL; gozkd keeps it to itself",
			Avoided: "no sequence has one: the trees would differ from there on",
		},
		{
			ID:      "create-session-op",
			Reason:  "ZooKeeper answers a createSession request with a frame that is no reply; gozkd takes it for an unknown op",
			Avoided: "no sequence has one: no client can read the answer",
		},
		{
			ID:      "malformed-write",
			Reason:  "a ZooKeeper ensemble answers no write any more after one that cannot be decoded; gozkd answers -5",
			Avoided: "no sequence for an ensemble has one; standalone servers both answer -5",
		},
		{
			ID:     "wrong-passwd-victim",
			Reason: "ZooKeeper closes the connection of a session before it looks at the password of who wants the session; gozkd looks first",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				return m.A != nil && m.A.Note == NoteVictimClosed && m.B != nil && m.B.Note == NoteVictimOpen
			},
		},
		{
			ID:      "read-only-sessions",
			Reason:  "a read-only ZooKeeper without local sessions answers a connect request with a frame that no client understands; gozkd opens a session",
			Avoided: "the servers that are compared have a quorum",
		},
		{
			ID:      "local-multi",
			Reason:  "a ZooKeeper that does not lead says that a local session has expired, of an ephemeral znode in a multi; gozkd says what the session is",
			Avoided: "standalone servers are compared, which have no local sessions",
		},
		{
			ID:      "read-only-claims",
			Reason:  "a read-only ZooKeeper says of a session that it does not know that it has expired; gozkd only if it has seen its end",
			Avoided: "the servers that are compared have a quorum",
		},
		{
			ID:     "resume-timing",
			Reason: "ZooKeeper closes the old connection of a session that is resumed on another thread, so it may still be open for a moment; in gozkd it is closed before the answer leaves",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				return m.A != nil && m.A.Note == NoteVictimOpen && m.B != nil && m.B.Note == NoteVictimClosed
			},
		},
		{
			ID:     "tls-empty-frame",
			Reason: "ZooKeeper's Netty port, which TLS needs, ignores a frame of length 0, its other port closes the connection; gozkd always closes it",
			Allows: func(t, _ *Transcript, m *Mismatch) bool {
				return m.A != nil && m.A.Note == NoteOpen && m.Step < len(t.Sequence.Steps) && bytes.HasPrefix(t.Sequence.Steps[m.Step].Raw, make([]byte, 4))
			},
		},
		{
			ID:      "set-acl-at-once",
			Reason:  "in ZooKeeper requests pipelined behind a setACL are checked against the old ACL, mostly; in gozkd against the new one, always",
			Avoided: "a setACL is the last request of its step: ZooKeeper answers now this way, now that",
		},
		{
			ID:      "sequence-overflow",
			Reason:  "ZooKeeper's counter of sequential znodes stops at 2147483647 and gives out names twice; gozkd's goes on",
			Avoided: "no sequence creates two thousand million znodes; the tests of datatree start from there",
		},
		{
			ID:      "auth-in-order",
			Reason:  "ZooKeeper's reply to auth and sasl overtakes those of earlier requests; gozkd's keeps its place",
			Avoided: "auth and sasl are the first requests of their step: nothing is there to overtake",
		},
		{
			ID:     "utf-8",
			Reason: "ZooKeeper writes characters beyond U+FFFF as two surrogates of three bytes each (CESU-8), and reads them back as two U+FFFD; gozkd writes UTF-8",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				fa, fb := fieldNamed(m.A, m.Field), fieldNamed(m.B, m.Field)
				return fa != nil && fb != nil && fa.Kind == Plain && fa.S != fb.S && (fromCESU8(fa.S) == fb.S || fa.S == replaced(fb.S))
			},
		},
		{
			ID:     "null-acl-id",
			Reason: "ZooKeeper fails with -5 on a null id in an ACL of world, digest or ip, by accident; gozkd says -114, as for any other bad id",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				if m.Request == nil || m.A == nil || m.B == nil || m.A.Err() != proto.ErrMarshallingError || !m.Request.hasNullID() {
					return false
				}
				if m.Request.comparesNullIDs() {
					return true
				}
				return m.B.Err() == proto.ErrInvalidACL
			},
		},
		{
			ID:     "null-acl-id-in-multi",
			Reason: "ZooKeeper fails such a multi as a whole and forgets to take back what it had noted of the ops before, for the requests pipelined behind it; in gozkd the op fails and nothing is left",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				return m.Request != nil && m.Request.Op == proto.OpMulti && m.Request.hasNullID() && m.A != nil && m.B != nil &&
					m.A.Err() == proto.ErrMarshallingError && m.B.Err() == proto.OK && m.B.failedResult() == proto.ErrInvalidACL
			},
			Diverges: true,
		},
		{
			ID:      "container-mode",
			Reason:  "ZooKeeper takes a createContainer whose mode says ephemeral for ephemeral until it is applied, and refuses it children; in gozkd it is a container at once",
			Avoided: "no generated createContainer has such a mode",
		},
		{
			ID:     "multi-read-leftovers",
			Reason: "ZooKeeper leaves the results so far behind the header of a multiRead that fails; gozkd sends the header alone, as with any error",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				return m.Request != nil && m.Request.Op == proto.OpMultiRead && m.A != nil && m.B != nil && m.Field == "length" &&
					m.A.Err() == m.B.Err() && m.A.Err() != proto.OK && len(m.B.Fields) == 3
			},
		},
		{
			ID:      "quota-at-once",
			Reason:  "ZooKeeper's leader checks a quota against what it has applied, and so may accept writes that exceed it together; gozkd counts all earlier writes",
			Avoided: "below a quota a write is the last request of its step, and the members of an ensemble have applied all steps before: ZooKeeper answers now this way, now that",
		},
		{
			ID:     "quota-in-multi",
			Reason: "ZooKeeper checks each op of a multi against the counts from before the multi, so it may exceed a quota or be refused without need; gozkd counts what the ops before did",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				if m.Request == nil || m.Request.Op != proto.OpMulti || m.A == nil || m.B == nil {
					return false
				}
				if bytes.Contains(m.Request.Body, []byte("/zookeeper_limits")) &&
					(m.A.Err() == proto.ErrMarshallingError || m.B.Err() == proto.ErrMarshallingError) {
					return true // the multi itself makes limits unreadable, or readable
				}
				refused := func(x *Message) bool {
					return x.Kind == MessageReply && x.Err() == proto.OK && x.failedResult() == proto.ErrQuotaExceeded
				}
				// The server that executes the multi may send an event before its reply.
				return (refused(m.A) || refused(m.B)) && (strings.HasPrefix(m.Field, "result") || m.Field == "message")
			},
			Diverges: true,
		},
		{
			ID:     "count-of-all",
			Reason: "the count of all znodes takes in those of sequences that went apart on purpose, which is no difference of its own",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				if m.Request == nil || m.Request.Op != proto.OpGetAllChildrenNumber || m.Field != "value" {
					return false
				}
				d := jute.NewDecoder(m.Request.Body)
				path := d.String()
				return path == "" || path == "/" || strings.HasPrefix(path, "/zookeeper")
			},
		},
		{
			ID:      "admin-authorization",
			Reason:  "ZooKeeper's admin commands are open, or authorized by the ACL of /; gozkd's need the superuser or a token",
			Avoided: "only the protocol is compared",
		},
		{
			ID:      "multi-read-states",
			Reason:  "gozkd answers a long multiRead in slices, with other requests in between",
			Avoided: "no generated multiRead is that long",
		},
		{
			ID:      "long-acl",
			Reason:  "ZooKeeper accepts any ACL up to jute.maxbuffer; gozkd bounds the entries and their size",
			Avoided: "no generated ACL is that long",
		},
		{
			ID:      "expensive-multi",
			Reason:  "ZooKeeper executes a multi that copies very much; gozkd refuses it",
			Avoided: "no generated multi is that expensive",
		},
		{
			ID:      "extended-types",
			Reason:  "ZooKeeper has TTL znodes only with extendedTypesEnabled; gozkd always has them",
			Avoided: "ZooKeeper runs with extendedTypesEnabled",
		},
		{
			ID:      "epoch",
			Reason:  "a standalone ZooKeeper's zxids have epoch 0; gozkd's have epoch 1 or more, as in an ensemble",
			Avoided: "zxids are compared by their order",
		},
		{
			ID:      "client-address",
			Reason:  "gozkd tries again to listen on a client address that a reconfig gave it, and stays where it listens already",
			Avoided: "no reconfig changes a client address",
		},
		{
			ID:      "peer-ports",
			Reason:  "a gozkd whose peer address a reconfig changes keeps its former port until all members use the new one, and a leader stays",
			Avoided: "no reconfig changes a peer address",
		},
		{
			ID:      "read-only-late",
			Reason:  "a gozkd that lost the majority keeps its clients for syncLimit ticks before it is read-only",
			Avoided: "the servers that are compared have a quorum",
		},
		{
			ID:     "reconfig-zxids",
			Reason: "a reconfig takes one zxid in ZooKeeper and two in gozkd, where the permission is checked before the new members are reached; the first configuration is a transaction in gozkd only",
			Allows: showsConfig,
		},
		{
			ID: "zxid-gaps", Gaps: true,
			Reason: "gozkd uses up a zxid for each write, a malformed one too, and when a session is resumed, ZooKeeper not always; clients only need zxids that rise",
		},
		{
			ID:      "server-numbers",
			Reason:  "a member's number is the top byte of its sessions' ids, where 0 and 255 have other meanings",
			Avoided: "members are numbered from 1",
		},
		{
			ID:      "low-numbers",
			Reason:  "gozkd bounds the requests of all connections, and cannot serve with a bound of none",
			Avoided: "the servers that are compared have the default",
		},
		{
			ID:      "boolean-words",
			Reason:  "an operator who writes FALSE or yes does not mean the opposite; where the safe meaning is ZooKeeper's, it is kept",
			Avoided: "the servers that are compared have lower-case words",
		},
		{
			ID:      "changed-lines",
			Reason:  "servers with different files could have two leaders",
			Avoided: "the configuration of the servers stays",
		},
		{
			ID:      "own-address",
			Reason:  "gozkd's members are replicated, so 0.0.0.0 cannot stand for a different server on each",
			Avoided: "the servers that are compared have no such line",
		},
		{
			ID:      "unlisted-servers",
			Reason:  "a stranger would get everything that ACLs protect",
			Avoided: "standalone servers are compared",
		},
		{
			ID:      "multi-address",
			Reason:  "a key that is in zoo.cfg should work",
			Avoided: "standalone servers are compared",
		},
		{
			ID:      "leader-serves",
			Reason:  "a leader that leaves clients to others can still be watched",
			Avoided: "the servers that are compared lead, and serve",
		},
		{
			ID:      "max-buffer",
			Reason:  "with less than 1024 a server serves nobody, or hardly",
			Avoided: "the servers that are compared have the default",
		},
		{
			ID:      "observer-masters",
			Reason:  "an observer exchanges requests and heartbeats with the leader",
			Avoided: "the servers that are compared have no observer",
		},
		{
			ID:      "throttle-keys",
			Reason:  "gozkd honours the documented names of the keys",
			Avoided: "the servers that are compared have no throttle",
		},
		{
			ID:      "request-throttle",
			Reason:  "gozkd throttles writes, which wait for others; reads wait for nobody",
			Avoided: "the servers that are compared have no throttle",
		},
		{
			ID:      "audit-lines",
			Reason:  "gozkd's lines cannot be forged, and it writes some that ZooKeeper fails to write",
			Avoided: "sequences compare replies",
		},
		{
			ID:      "tls-versions",
			Reason:  "ZooKeeper 3.9 takes only TLS 1.3 by default; gozkd takes 1.2, too",
			Avoided: "sequences are about what is sent within a connection",
		},
		{
			ID:      "tls-stores",
			Reason:  "the two read other formats of key stores",
			Avoided: "sequences are about what is sent within a connection",
		},
		{
			ID:      "tls-revocation",
			Reason:  "gozkd reads revocation lists from files",
			Avoided: "sequences are about what is sent within a connection",
		},
		{
			ID:      "tls-ports",
			Reason:  "gozkd closes a connection without TLS, and bounds handshakes",
			Avoided: "sequences are about what is sent within a connection",
		},
		{
			ID:      "tls-names",
			Reason:  "gozkd refuses certificates whose subjects are not proper DER",
			Avoided: "sequences are about what is sent within a connection",
		},
		{
			ID:      "tls-servers",
			Reason:  "a certificate is compared with the server line of the server that the caller says it is",
			Avoided: "sequences are about what clients send",
		},
		{
			ID:      "tls-reload",
			Reason:  "gozkd reads stores when they change",
			Avoided: "sequences are about what is sent within a connection",
		},
		{
			ID:      "kerberos-names",
			Reason:  "ZooKeeper lets clients choose their id if no rule applies",
			Avoided: "sequences do not authenticate by SASL",
		},
		{
			ID:      "kerberos-rules",
			Reason:  "gozkd refuses rules that can only fail, and regular expressions that Go understands differently",
			Avoided: "sequences do not authenticate by SASL",
		},
		{
			ID:      "kerberos-login",
			Reason:  "gozkd reads the keytab for each client",
			Avoided: "sequences do not authenticate by SASL",
		},
		{
			ID:      "sasl-both",
			Reason:  "gozkd offers both mechanisms at once",
			Avoided: "sequences do not authenticate by SASL",
		},
		{
			ID:      "sasl-nonce",
			Reason:  "gozkd uses a nonce once",
			Avoided: "sequences do not authenticate by SASL",
		},
		{
			ID:      "sasl-section",
			Reason:  "gozkd does not start without the SASL that it is told to demand",
			Avoided: "sequences begin with a server that runs",
		},
		{
			ID:      "sasl-whoami",
			Reason:  "gozkd names SASL users whatever the providers",
			Avoided: "sequences do not authenticate by SASL",
		},
		{
			ID:      "sasl-user-names",
			Reason:  "gozkd applies rules for principals to principals only",
			Avoided: "sequences do not authenticate by SASL",
		},
		{
			ID:      "acl-schemes-level",
			Reason:  "an ACL that a member could not evaluate must not be in the state",
			Avoided: "servers without an ensemble have that level at once",
		},
		{
			ID:      "auth-classes",
			Reason:  "gozkd can't load Java classes",
			Avoided: "the servers have no classes of others",
		},
	}
}

// configAddress and configVersion are the parts of /zookeeper/config that no two ensembles share.
var configAddress, configVersion = regexp.MustCompile(`127\.0\.0\.1:[0-9:]+`), regexp.MustCompile(`version=[0-9a-f]+`)

// showsConfig reports whether m is the version or the addresses of the first configuration of the
// ensembles.
func showsConfig(_, _ *Transcript, m *Mismatch) bool {
	if m.Request == nil || m.A == nil || m.B == nil || !bytes.Contains(m.Request.Body, []byte("/zookeeper/config")) {
		return false
	}
	switch m.Field[strings.LastIndex(m.Field, ".")+1:] { // multis put the result before the name
	case "mzxid":
		return m.A.Field(m.Field) == 0
	case "data":
		plain := func(m *Message, name string) string {
			return configVersion.ReplaceAllString(configAddress.ReplaceAllString(fieldNamed(m, name).S, "A"), "V")
		}
		return plain(m.A, m.Field) == plain(m.B, m.Field)
	}
	return false
}

func fieldNamed(m *Message, name string) *Field {
	if m == nil {
		return nil
	}
	for i := range m.Fields {
		if m.Fields[i].Name == name {
			return &m.Fields[i]
		}
	}
	return nil
}
