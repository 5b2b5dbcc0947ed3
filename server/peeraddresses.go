package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
)

// peerAddresses knows where to look for the other members. Each server's own configuration says so first: the address of a
// member is often another one from each place (0.0.0.0 for oneself, a name within a network, a port that is forwarded). When a reconfig
// moves a member, or brings a new one, its address there counts. That is kept in a file beside the data, as ZooKeeper keeps it in its
// dynamic configuration file.
type peerAddresses struct {
	path       string         // of the file; empty: none is kept
	configured serverlist.Set // by this server's own configuration
	replicated serverlist.Set // as of the state, when it was newest
	version    proto.Zxid     // of replicated; 0: the state named no members yet
	here       serverlist.Set // where this server looks for them
	extra      serverlist.Set // members to come
	left       serverlist.Set // members that were removed, as the state named them: they are served as long as they run
	leftHere   serverlist.Set // the same, with the addresses that this server used
}

const peerSections = 3

// openPeerAddresses reads the file, if there is one. Lines that the configuration changed since it was written are taken from
// the configuration.
func openPeerAddresses(dir string, configured serverlist.Set) (*peerAddresses, error) {
	p := &peerAddresses{configured: configured, here: configured}
	if dir == "" {
		return p, nil
	}
	p.path = filepath.Join(dir, "members")
	text, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("server: addresses of the members: %w", err)
	}
	var sets []serverlist.Set
	for section := range strings.SplitSeq(string(text), "\n\n") {
		set, version, err := serverlist.ParseConfig(strings.TrimSpace(section))
		if err != nil {
			return nil, fmt.Errorf("server: %s: %w; it can be removed: the addresses are then those of the configuration", p.path, err)
		}
		sets, p.version = append(sets, set), max(p.version, version)
	}
	if len(sets) != peerSections {
		return nil, fmt.Errorf("server: %s has %d sections, not %d; it can be removed: the addresses are then those of the configuration",
			p.path, len(sets), peerSections)
	}
	p.replicated, p.here = sets[1], sets[2]
	for _, m := range configured {
		if before, ok := sets[0].Get(m.ID); !ok || before != m {
			p.here = p.here.With(m)
		}
	}
	return p, nil
}

// update takes the members of the state, and those that are to come. A state that is older than what is known already, as after a
// restart before the log behind the checkpoint is applied again, says nothing of addresses.
func (p *peerAddresses) update(replicated serverlist.Set, version proto.Zxid, wanted serverlist.Set) error {
	p.extra = wanted
	if version <= p.version {
		return nil
	}
	p.version = version
	var here serverlist.Set
	for _, m := range p.here {
		if before, was := p.replicated.Get(m.ID); was {
			if _, is := replicated.Get(m.ID); !is {
				p.left, p.leftHere = p.left.With(before), p.leftHere.With(m)
				continue
			}
		}
		here = here.With(m)
	}
	for _, m := range replicated {
		before, was := p.replicated.Get(m.ID)
		_, known := here.Get(m.ID)
		switch back, left := p.left.Get(m.ID); {
		case known && (!was || before.PeerAddress() == m.PeerAddress()):
		case !known && left && back.PeerAddress() == m.PeerAddress():
			it, _ := p.leftHere.Get(m.ID)
			here = here.With(it)
		default:
			here = here.With(m)
		}
	}
	p.here, p.replicated = here, replicated
	return p.save()
}

func (p *peerAddresses) save() error {
	if p.path == "" {
		return nil
	}
	text := strings.Join([]string{p.configured.Text(0), p.replicated.Text(p.version), p.here.Text(0)}, "\n\n")
	f, err := os.OpenFile(p.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(p.path+".new", p.path); err != nil {
		return err
	}
	return vfs.OS{}.SyncDir(filepath.Dir(p.path))
}

// addresses returns host:port by member.
func (p *peerAddresses) addresses() map[uint64]string {
	all := make(map[uint64]string)
	for _, set := range []serverlist.Set{p.leftHere, p.extra, p.here} {
		for _, m := range set {
			all[m.ID] = m.PeerAddress()
		}
	}
	return all
}
