package inspect

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

// sum holds the totals of a subtree.
type sum struct {
	Path       string `json:"path"`
	Znodes     int64  `json:"znodes"`
	Ephemerals int64  `json:"ephemerals"`
	Bytes      int64  `json:"bytes"` // in paths and data, as ZooKeeper's approximate_data_size
}

// sums adds up subtrees: one for each znode at most depth levels below the root of what is summed.
type sums struct {
	root  string
	depth int
	list  []sum          // in the order of the walk
	index map[string]int // into list, by path
}

// add counts a znode below the root in the subtrees that it belongs to. Parents come first.
func (s *sums) add(z *proto.Znode) {
	below := strings.TrimPrefix(z.Path[len(strings.TrimSuffix(s.root, "/")):], "/")
	path := s.root
	s.count(path, z)
	for range s.depth {
		if below == "" {
			return
		}
		var name string
		name, below, _ = strings.Cut(below, "/")
		path = strings.TrimSuffix(path, "/") + "/" + name
		s.count(path, z)
	}
}

func (s *sums) count(path string, z *proto.Znode) {
	i, ok := s.index[path]
	if !ok {
		i = len(s.list)
		s.index[path] = i
		s.list = append(s.list, sum{Path: path})
	}
	t := &s.list[i]
	t.Znodes++
	t.Bytes += int64(len(z.Path) + len(z.Data))
	if z.Mode == proto.ModeEphemeral {
		t.Ephemerals++
	}
}

func (s *sums) print(p *printer) {
	if !p.json {
		p.line(fmt.Sprintf("%12s %12s %14s  %s", "znodes", "ephemerals", "bytes", "subtree"))
	}
	for _, t := range s.list {
		if p.json {
			p.object(t)
		} else {
			p.line(fmt.Sprintf("%12d %12d %14d  %s", t.Znodes, t.Ephemerals, t.Bytes, printable.Text(t.Path)))
		}
	}
}
