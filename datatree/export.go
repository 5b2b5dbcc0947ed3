package datatree

import (
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// ZooKeeperACLs returns the lists of all znodes except the open list, each once, and for each znode
// that [Tree.ZooKeeperZnodes] yields the key is the index plus 1.
func (s *znodeStore) ZooKeeperACLs() [][]proto.ACL {
	lists := make([][]proto.ACL, len(s.acls.lists))
	for i, a := range s.acls.lists {
		if a == nil { // free: no znode names it, and ZooKeeper takes any list
			lists[i] = proto.OpenACL()
			continue
		}
		lists[i] = a.list
	}
	return lists
}

// ZooKeeperZnodes calls f with each znode as a snapshot of ZooKeeper stores it, parents first,
// until f returns an error. The members in /zookeeper/config are left out: it writes its own.
func (s *znodeStore) ZooKeeperZnodes(f func(*zkfiles.Znode) error) error {
	var walk func(n *znode) error
	walk = func(n *znode) error {
		r := s.record(n)
		z := zkfiles.Znode{Path: n.path(), Data: r.bytes(), ACL: zkfiles.OpenKey, Stat: r.zooKeeperStat()}
		if n.acl != 0 {
			z.ACL = int64(n.acl)
		}
		if z.Path == configPath {
			z.Data = []byte{}
		}
		if err := f(&z); err != nil {
			return err
		}
		for _, child := range s.sorted(s.children(n)) {
			if err := walk(child); err != nil {
				return err
			}
		}
		return nil
	}
	return walk(s.root)
}
