package zkdata

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/zkfiles"
)

// directory is a data directory as a ZooKeeper server, a crash or a person leaves it.
type directory struct {
	Name  string
	write func(*writer)
	// Quorum says that the server is a member of an ensemble, which reads the files of epochs and
	// myid. It begins a new epoch when it starts, so that its last zxid is not recorded.
	Quorum bool
	Flags  []string // of ZooKeeper's JVM
	LogDir bool     // dataLogDir is the directory logs beside the dataDir
	// differs, if not empty, is the entry of docs/reference/differences.md that says why gozkd does
	// what the field gozkd says. refuses is then a part of the error.
	differs string
	gozkd   answer
}

// answer is what a server does with a directory: it serves a state, or refuses to start.
type answer struct {
	Refuses string `json:",omitempty"` // the last exception
	Zxid    string `json:",omitempty"` // of the last transaction
	Digest  string `json:",omitempty"` // of the tree, as clients see it
	Znodes  int    `json:",omitempty"` // except those below /zookeeper
}

// writer writes files, whose names are relative to version-2 in root.
type writer struct {
	t    *testing.T
	root string
}

func (w *writer) path(name string) string { return filepath.Join(w.root, "version-2", name) }

func (w *writer) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) mkdir(name string)        { w.must(os.MkdirAll(w.path(name), 0o755)) }
func (w *writer) link(target, name string) { w.must(os.Symlink(target, w.path(name))) }

func (w *writer) file(name string, content []byte) {
	w.mkdir(filepath.Dir(name))
	w.must(os.WriteFile(w.path(name), content, 0o644))
}

// writeTo writes the directory into root/data and root/logs.
func (d *directory) writeTo(t *testing.T, root string) {
	t.Helper()
	w := &writer{t, filepath.Join(root, "data")}
	w.must(os.MkdirAll(w.root, 0o755))
	d.write(w)
}

var writeDirectories = flag.String("directories", "", "write the directories of TestDirectories below this one")

// recorded is what ZooKeeper 3.9.5 does with each directory: make compat-directories compares it.
//
//go:embed testdata/directories.json
var recorded []byte

// Of each directory, what is imported is what ZooKeeper 3.9.5 serves, and what ZooKeeper refuses is
// refused, unless differences.md says why not.
func TestDirectories(t *testing.T) {
	all := directories()
	if *writeDirectories != "" {
		for i := range all {
			all[i].writeTo(t, filepath.Join(*writeDirectories, fmt.Sprint(i)))
		}
		b, err := json.Marshal(all)
		if err == nil {
			err = os.WriteFile(filepath.Join(*writeDirectories, "list.json"), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	var answers map[string]answer
	if err := json.Unmarshal(recorded, &answers); err != nil {
		t.Fatal(err)
	}
	differences, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "reference", "differences.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		t.Run(d.Name, func(t *testing.T) {
			want, ok := answers[d.Name]
			if !ok {
				t.Fatal("what ZooKeeper does is not recorded: run make compat-directories DIRECTORIES=record")
			}
			root := t.TempDir()
			d.writeTo(t, root)
			got := imported(t, root, d)
			if d.differs == "" {
				if got != want && (got.Refuses == "" || want.Refuses == "") {
					t.Errorf("gozkd: %+v\nZooKeeper: %+v", got, want)
				}
				return
			}
			if !strings.Contains(string(differences), "\n### "+d.differs+"\n") {
				t.Errorf("differences.md has no %s", d.differs)
			}
			if got.Refuses != "" && d.gozkd.Refuses != "" && strings.Contains(got.Refuses, d.gozkd.Refuses) {
				got.Refuses = d.gozkd.Refuses
			}
			if got != d.gozkd || got == want || got.Refuses != "" && want.Refuses != "" {
				t.Errorf("gozkd: %+v, want %+v\nZooKeeper: %+v", got, d.gozkd, want)
			}
		})
	}
	if len(answers) != len(all) {
		t.Errorf("%d answers are recorded for %d directories", len(answers), len(all))
	}
}

// imported returns what an import does with a directory.
func imported(t *testing.T, root string, d directory) answer {
	t.Helper()
	arg := filepath.Join(root, "data")
	if d.LogDir {
		arg += ":" + filepath.Join(root, "logs")
	}
	l, err := func() (*Loaded, error) {
		d, err := Find(arg)
		if err != nil {
			return nil, err
		}
		return Load(t.Context(), d, Options{})
	}()
	if err != nil {
		return answer{Refuses: err.Error()}
	}
	var a answer
	if !d.Quorum {
		a.Zxid = l.Tree.LastZxid().String()
	}
	var digest uint64
	err = l.Tree.ZooKeeperZnodes(func(z *zkfiles.Znode) error {
		if !strings.HasPrefix(z.Path, "/zookeeper/") {
			a.Znodes++
		}
		stat := z.Stat
		if kind, _, _ := zkfiles.KindOf(stat.Owner); kind != zkfiles.Ephemeral {
			stat.Owner = 0 // as clients see it
		}
		digest += zkfiles.ZnodeDigest(z.Path, z.Data, &stat)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a.Digest = fmt.Sprintf("%#x", digest)
	return a
}
