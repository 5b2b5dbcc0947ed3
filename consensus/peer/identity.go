package peer

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/memberid"
)

const (
	// confirmTimeout bounds the question whether a member has made a connection. The caller waits
	// for helloTimeout, and then longer each time.
	confirmTimeout = 3 * time.Second
	// maxQuestions bounds the questions to a member at a time; others wait.
	maxQuestions = 64
	// maxQuestionsPerHost bounds the questions about callers of a single host, so that strangers on
	// a few hosts do not make the member itself wait. A member makes a connection for frames and
	// sometimes another for a checkpoint.
	maxQuestionsPerHost = 2
)

// link is an accepted connection whose caller has said hello.
type link struct {
	from   uint64
	proven bool // the caller has proved its identity
	// known: the member had an address here when its connection was to be proved. Otherwise there
	// was nobody to ask, even if SetPeers has been called since.
	known bool
	// transcript holds the messages of the hello if the caller has proved that it knows the secret.
	transcript [][]byte
}

// identify decides whether a connection is accepted: by the ids, then by a proof of the caller's
// identity, and last by the Handler, which judges only proven members.
func (n *Network) identify(ctx context.Context, v *visitor, hello *greeting) (*link, error) {
	question := hello.kind == kindConfirm // which needs no proof: a yes says only what the asker must know already
	if err := n.checkIDs(hello); err != nil && !question {
		return nil, err
	}
	contents, ext := splitExtension(hello.contents)
	questions, addresses := n.peerOf(hello.from)
	l := &link{from: hello.from, known: addresses != nil}
	address := strings.Join(addresses, addressSeparator)
	if !l.known && !question && n.cfg.Guest != nil {
		address = n.cfg.Guest(hello.from, contents)
	}
	bound, err := n.checkCaller(ctx, v, hello.from, address)
	if err != nil || question {
		return l, err
	}
	switch secret := len(n.cfg.Secret) > 0; {
	case secret && ext.has(flagSecret):
		l.proven, err = true, n.challenge(v.stream, hello, l)
	case secret && !n.cfg.SecretOptional:
		err = refuse(RefusedNoSecret, "member %d has no ensemble secret and member %d requires one: set gozkd.peer.secretFile on member %d", hello.from, n.cfg.Self, hello.from)
	case l.known && bound:
		l.proven = true
	case !l.known && address != "":
		l.proven, err = n.admitGuest(ctx, v, hello.from, address, bound, ext.nonce)
	}
	// A copy of the member's machine has its secret and its certificate, but not its address.
	if err == nil && l.known && (!l.proven || hello.kind == kindFrames && n.hears(hello.from)) {
		err = n.confirm(ctx, v, hello.from, questions, addresses, ext.nonce)
		l.proven = true // unless err
	}
	if err != nil {
		return nil, err
	}
	guest := !l.known && l.proven && address != ""
	err = n.judge(hello.from, contents, l.known || guest)
	if guest && err == nil {
		n.invite(hello.from, address)
	}
	return l, err
}

// judge lets the Handler decide about the hello of a member.
func (n *Network) judge(from uint64, contents []byte, known bool) error {
	if err := n.cfg.Handler.Accept(from, contents, known); err != nil {
		return &rejectedError{reason: RefusedByMember, err: err}
	}
	return nil
}

func (n *Network) checkIDs(hello *greeting) error {
	switch {
	case hello.kind != kindFrames && hello.kind != kindCheckpoint:
		return fmt.Errorf("%w: hello of kind %d", ErrCorrupt, hello.kind)
	case hello.to != n.cfg.Self:
		return refuse(RefusedUnknown, "this is member %d, not %d", n.cfg.Self, hello.to)
	case hello.from == n.cfg.Self || hello.from == 0:
		return refuse(RefusedUnknown, "member %d can't have member %d as its peer: two servers have the same id, correct one of them", n.cfg.Self, hello.from)
	}
	return nil
}

// challenge lets the caller prove that it knows the secret. The caller proves it first, so a
// stranger gets nothing that is computed from the secret.
func (n *Network) challenge(conn net.Conn, hello *greeting, l *link) error {
	ext := extension{flags: n.flags(), nonce: newNonce()}
	question := greeting{kind: kindChallenge, from: n.cfg.Self, to: hello.from, contents: ext.append(nil)}
	said, asked := hello.append(nil), question.append(nil)
	if _, err := conn.Write(asked); err != nil {
		return silence(err)
	}
	reply, err := readGreeting(conn)
	switch {
	case err != nil:
		return silence(err)
	case reply.kind == kindRefused:
		return &RefusedError{Peer: hello.from, Reason: reasonText(string(reply.contents))}
	case reply.kind != kindProof || reply.from != hello.from || reply.to != n.cfg.Self:
		return fmt.Errorf("%w: reply of kind %d to a challenge", ErrCorrupt, reply.kind)
	}
	bound, err := binding(conn)
	if err != nil {
		return err
	}
	l.transcript = transcript(said, asked, bound)
	if want := proof(n.cfg.Secret, labelCaller, l.transcript...); !hmac.Equal(want[:], reply.contents) {
		return wrongSecret(hello.from, n.cfg.Self)
	}
	return nil
}

// prove is the caller's side of challenge. It returns the answer, whose proof is verified.
func (n *Network) prove(conn net.Conn, to uint64, said []byte, question *greeting) (greeting, error) {
	if len(n.cfg.Secret) == 0 {
		return greeting{}, fmt.Errorf("%w: a challenge although this member has no ensemble secret", ErrCorrupt)
	}
	bound, err := binding(conn)
	if err != nil {
		return greeting{}, err
	}
	messages := transcript(said, question.append(nil), bound)
	sum := proof(n.cfg.Secret, labelCaller, messages...)
	reply := greeting{kind: kindProof, from: n.cfg.Self, to: to, contents: sum[:]}
	if _, err := conn.Write(reply.append(nil)); err != nil {
		return greeting{}, err
	}
	answer, err := readGreeting(conn)
	if err != nil || answer.kind != kindAccepted {
		return answer, err
	}
	contents, ext := splitExtension(answer.contents)
	if want := proof(n.cfg.Secret, labelCalled, append(messages, contents)...); !hmac.Equal(want[:], ext.proof[:]) {
		return greeting{}, wrongSecret(to, n.cfg.Self)
	}
	return answer, nil
}

// transcript returns the messages that both proofs contain: bound, the binding to the connection,
// is part of it with TLS only.
func transcript(said, asked, bound []byte) [][]byte {
	if bound == nil {
		return [][]byte{said, asked}
	}
	return [][]byte{said, asked, bound}
}

func wrongSecret(theirs, ours uint64) error {
	return refuse(RefusedSecret, "the ensemble secret of member %d is not that of member %d: compare the files that gozkd.peer.secretFile names", theirs, ours)
}

// checkUnproven decides about an answer that came without a challenge, so without a proof.
func (n *Network) checkUnproven(from uint64, ext *extension) error {
	switch {
	case len(n.cfg.Secret) == 0:
		return nil
	case ext.has(flagSecret):
		return refuse(RefusedSecret, "member %d has an ensemble secret and did not use it", from)
	case n.cfg.SecretOptional:
		return nil
	}
	return refuse(RefusedNoSecret, "member %d has no ensemble secret and member %d requires one: set gozkd.peer.secretFile on member %d", from, n.cfg.Self, from)
}

// peerOf returns a peer's addresses, nil for a guest or for none, and the limit of questions to it.
func (n *Network) peerOf(id uint64) (questions *fair.Gauge, addresses []string) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if p := n.peers[id]; p != nil && !p.guest && p.address != "" {
		return p.questions, slices.Concat(p.addresses())
	}
	return nil, nil
}

// confirm asks a member, at its own addresses, whether it is making the connection with this nonce.
// A stranger who reaches this port does not receive what is sent there. The question ends with
// caller, the context of the connection.
func (n *Network) confirm(caller context.Context, v *visitor, from uint64, questions *fair.Gauge, addresses []string, id nonce) (err error) {
	wait, stop := context.WithDeadline(caller, v.until)
	defer stop()
	end, ok := questions.Await(wait, v.host)
	switch {
	case caller.Err() != nil && !ok:
		return net.ErrClosed
	case !ok:
		return n.unconfirmed(from, "too many questions to member %d are under way", from)
	}
	defer end()
	share := confirmTimeout
	for i, address := range addresses {
		if i < len(addresses)-1 { // the first, at which the member should be, has half of the time
			share /= 2
		}
		within, cancel := context.WithTimeout(wait, share)
		answered, failed := n.confirmAt(within, v, from, address, id)
		cancel()
		switch {
		case caller.Err() != nil:
			return net.ErrClosed
		case answered:
			return failed
		case i == 0: // the address that the operator expects it at
			err = failed
		}
	}
	return err
}

// confirmAt is confirm at one address. answered is false if the member did not answer there.
func (n *Network) confirmAt(ctx context.Context, v *visitor, from uint64, address string, id nonce) (answered bool, err error) {
	answer, err := n.ask(ctx, address, greeting{kind: kindConfirm, from: n.cfg.Self, to: from, contents: id[:]})
	switch {
	case err != nil:
		return false, n.unconfirmed(from, "member %d can't be asked at its address %s whether this connection is its own: %s", from, address, logKey(err))
	case answer.kind == kindConfirmed && answer.from == from:
		return true, nil
	case answer.kind == kindDenied && answer.from == from:
		n.cfg.Logger.Debug("a caller is not who it says it is",
			"peer", memberid.Number(from), "address", address, "host", v.host)
		return true, refuse(RefusedImpostor, "member %d is not making this connection: is another server started with the myid %d, or was the question too late?", from, from)
	case answer.kind == kindRefused:
		return false, n.unconfirmed(from, "the member at %s refuses to tell whether this connection is its own: %s", address, reasonText(string(answer.contents)))
	}
	return false, n.unconfirmed(from, "whoever listens at %s, the address of member %d, does not tell whether this connection is its own", address, from)
}

// unconfirmed refuses a caller, which may be a stranger, without telling it addresses or errors.
func (n *Network) unconfirmed(from uint64, format string, args ...any) error {
	return &rejectedError{
		reason: RefusedUnreachable, err: fmt.Errorf(format, withNumbers(args)...),
		told: fmt.Sprintf("it could not be confirmed that this connection is that of member %d: the log of member %d says why",
			memberid.Number(from), memberid.Number(n.cfg.Self)),
	}
}

func (n *Network) ask(ctx context.Context, address string, question greeting) (greeting, error) {
	conn, _, err := n.dial(ctx, question.to, address, silenceTimeout)
	if err != nil {
		return greeting{}, err
	}
	release := closeWith(ctx, conn)
	defer release()
	if _, err := conn.Write(question.append(nil)); err != nil {
		return greeting{}, err
	}
	answer, err := readGreeting(conn)
	// All that matters has arrived. A reset instead of an orderly end leaves no local port in
	// TIME_WAIT: strangers that cause many questions would else use up the ports to this member.
	if c, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = c.SetLinger(0) // fails if the connection is closed already
	}
	return answer, alerted(err, question.to)
}

// answerConfirm says whether this member is making the connection with a nonce.
func (n *Network) answerConfirm(conn net.Conn, question *greeting) {
	answer := greeting{kind: kindDenied, from: n.cfg.Self, to: question.from}
	var id nonce
	if copy(id[:], question.contents) == nonceBytes && question.to == n.cfg.Self {
		n.mu.RLock()
		if to, ok := n.dialing[id]; ok && to == question.from {
			answer.kind = kindConfirmed
		}
		n.mu.RUnlock()
	}
	closeWithMessage(conn, answer.append(nil))
}

// noteDial records the nonce of a connection that this member is making, until forget is called.
func (n *Network) noteDial(id nonce, to uint64) (forget func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialing[id] = to
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.dialing, id)
	}
}

func (n *Network) flags() byte {
	if len(n.cfg.Secret) > 0 {
		return flagAlways | flagSecret
	}
	return flagAlways
}

// errStranger is returned for a connection that would replace that of a member without a proof.
var errStranger = &rejectedError{reason: RefusedImpostor, err: errors.New("this member is connected, and nothing proves that the new connection is its own")}
