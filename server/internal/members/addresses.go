package members

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
)

// Addresses holds the addresses at which this server reaches the other members. They come from
// this server's own configuration, because the address of a member often depends on where it is
// used: 0.0.0.0 for the member itself, a name within a network, a port that is forwarded. When a
// reconfig moves or adds a member, the address in the reconfig counts. A file next to the data
// keeps these addresses for the next start, as ZooKeeper's dynamic configuration file does.
type Addresses struct {
	disk         vfs.FS
	path         string          // of the file; empty: there is none
	known        serverlist.File // Version is 0 if the state had no members yet
	joining      serverlist.Set  // members that a pending reconfig adds
	removed      serverlist.Set  // removed members as the state had them: they are served as long as they run
	removedLocal serverlist.Set  // the same, with the addresses that this server used
}

// OpenAddresses reads the file, if it exists. Lines of the configuration that changed since
// the file was written take precedence.
func OpenAddresses(disk vfs.FS, dir string, configured serverlist.Set) (*Addresses, error) {
	p := &Addresses{disk: disk, known: serverlist.File{Configured: configured, Local: configured}}
	if dir == "" {
		return p, nil
	}
	p.path = filepath.Join(dir, "members")
	text, err := vfs.ReadFile(p.disk, p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("server: addresses of the members: %w", err)
	}
	if p.known, err = serverlist.ParseFile(string(text)); err != nil {
		return nil, fmt.Errorf("server: %s: %w; the file can be removed: the addresses are then those of the configuration", p.path, err)
	}
	for _, m := range configured {
		if before, _ := p.known.Configured.Get(m.ID); before != m {
			p.known.Local = p.known.Local.With(m)
		}
	}
	p.known.Configured = configured
	return p, nil
}

// Update takes the members of the state, and wanted: the same with the members that a pending
// reconfig adds. A state with an older version does not change addresses: after a restart, the log
// after the checkpoint is applied again.
func (p *Addresses) Update(replicated serverlist.Set, version proto.Zxid, wanted serverlist.Set) error {
	p.joining = wanted
	if version <= p.known.Version {
		return nil
	}
	p.known.Version = version
	var local serverlist.Set
	for _, m := range p.known.Local {
		if before, was := p.known.Replicated.Get(m.ID); was {
			if _, is := replicated.Get(m.ID); !is {
				p.removed, p.removedLocal = p.removed.With(before), p.removedLocal.With(m)
				continue
			}
		}
		local = local.With(m)
	}
	for _, m := range replicated {
		before, was := p.known.Replicated.Get(m.ID)
		_, known := local.Get(m.ID)
		switch former, _ := p.removed.Get(m.ID); {
		case known && (!was || before.PeerAddress() == m.PeerAddress()):
		case !known && former.PeerAddress() == m.PeerAddress(): // it returns
			used, _ := p.removedLocal.Get(m.ID)
			local = local.With(used)
		default:
			local = local.With(m)
		}
	}
	p.known.Local, p.known.Replicated = local, replicated
	return p.save()
}

func (p *Addresses) save() error {
	if p.path == "" {
		return nil
	}
	if err := vfs.WriteFile(p.disk, p.path+".new", []byte(p.known.String())); err != nil {
		return err
	}
	if err := p.disk.Rename(p.path+".new", p.path); err != nil {
		return err
	}
	return p.disk.SyncDir(filepath.Dir(p.path))
}

// Replicated reports whether there was ever a state with members here.
func (p *Addresses) Replicated() bool { return p.known.Version != 0 }

// Local returns the line of a member with the addresses that this server uses.
func (p *Addresses) Local(id uint64) (serverlist.Member, bool) { return p.known.Local.Get(id) }

// ByMember returns host:port by member id.
func (p *Addresses) ByMember() map[uint64]string {
	all := make(map[uint64]string)
	for _, set := range []serverlist.Set{p.removedLocal, p.joining, p.known.Local} {
		for _, m := range set {
			all[m.ID] = m.PeerAddress()
		}
	}
	return all
}
