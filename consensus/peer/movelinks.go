package peer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/wakeup"
)

func (n *Network) signalLinks() { wakeup.Send(n.linksChanged) }

// moveLinks makes connections again that are outdated, one at a time. A connection stays until the
// peer accepts a trial connection.
func (n *Network) moveLinks() {
	tried := make(map[uint64]bool) // peers that did not accept a trial connection
	rejected := false              // one of them did not for a reason that seldom passes
	var retry backoff
	for n.life.Err() == nil {
		if p := n.outdatedLink(tried); p != nil {
			if err := n.tryLink(p); err != nil {
				tried[p.id], rejected = true, rejected || isRejection(err)
				if n.loggedOut.isNew(p.id, "move: "+logKey(err)) {
					p.logger.Warn("the connection to the peer stays as it is: a trial connection of the configured kind, to its present address, is not accepted, or not yet", "error", err)
				}
				continue
			}
			if !n.moveLink(p) { // another server with this id may have answered: a trial proves no identity
				tried[p.id], rejected = true, true
			}
			continue
		}
		var again <-chan time.Time
		if len(tried) > 0 {
			again = time.After(retry.next(0, rejected))
		} else {
			retry = backoff{}
		}
		select {
		case <-n.linksChanged:
		case <-again:
			clear(tried)
			rejected = false
		case <-n.life.Done():
		}
	}
}

// outdated reports whether the peer is connected at its former address, or whether the connection's
// use of TLS differs from the mode: dials is that of the mode. The caller must hold net.mu.
func (p *peer) outdated(dials bool) bool {
	return p.connected && (p.at == p.former || (p.tls != "") != dials)
}

// outdatedLink returns a peer, not in except, whose connection is outdated, or nil.
func (n *Network) outdatedLink(except map[uint64]bool) *peer {
	n.mu.RLock()
	defer n.mu.RUnlock()
	dials := n.encryption.Load().Mode.dials()
	var ids []uint64
	for id, p := range n.peers {
		if p.outdated(dials) && !except[id] {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return n.peers[slices.Min(ids)]
}

// tryLink asks a peer a question on a connection of the configured kind; nil: the peer answers.
func (n *Network) tryLink(p *peer) error {
	n.mu.RLock()
	life, address := p.ctx, p.address
	n.mu.RUnlock()
	ctx, cancel := context.WithTimeout(life, silenceTimeout)
	defer cancel()
	id := newNonce()
	answer, err := n.ask(ctx, address, greeting{kind: kindConfirm, from: n.cfg.Self, to: p.id, contents: id[:]})
	switch {
	case err != nil:
		return err
	case answer.kind == kindRefused:
		return &RefusedError{Peer: p.id, Reason: reasonText(string(answer.contents))}
	case answer.kind != kindDenied || answer.from != p.id:
		return fmt.Errorf("%w: answer of kind %d from %d to a trial connection",
			ErrCorrupt, answer.kind, memberid.Number(answer.from))
	}
	return nil
}

// moveLink ends the connection to a peer, waits until it is made again, or silenceTimeout, and
// reports whether it is not outdated any longer.
func (n *Network) moveLink(p *peer) bool {
	state := func() (end context.CancelCauseFunc, links int, outdated bool) {
		n.mu.RLock()
		defer n.mu.RUnlock()
		return p.endLink, p.links, p.outdated(n.encryption.Load().Mode.dials())
	}
	end, before, outdated := state()
	if !outdated {
		return true
	}
	end(errChanged)
	timeout := time.NewTimer(silenceTimeout)
	defer timeout.Stop()
	for {
		if _, links, outdated := state(); links != before {
			return !outdated
		}
		select {
		case <-n.linksChanged:
		case <-timeout.C:
			return false
		case <-n.life.Done():
			return false
		}
	}
}
