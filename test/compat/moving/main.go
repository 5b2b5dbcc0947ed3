// Command moving moves state from ZooKeeper to gozkd and back, with real servers. In each round a
// ZooKeeper server of a release is put under random load and killed. The files that the server left
// are imported, and the result is compared with the state that the restarted ZooKeeper serves. Then
// the import is exported, a ZooKeeper starts from the export, and its state is imported again.
//
//	go run ./test/compat/moving -live 3.9.5
//
// migrates a running ensemble, whose leader is killed twice meanwhile, under clients that take
// locks.
//
// Exit status: 1 if anything differs or a server fails, 2 for wrong usage.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// allReleases are the releases of -releases all. The first release of each line cannot start on a
// current Java.
const allReleases = "3.4.14,3.5.10,3.6.4,3.8.4,3.9.5"

func main() { must.Program("moving", run) }

// world is shared by all parts of a run.
type world struct {
	ctx   context.Context
	own   server.Kind // the gozkd to test
	work  string
	rng   *rand.Rand
	taken *server.Ensemble // which takes over from the ensemble that live migrates
}

func run(ctx context.Context, flags *flag.FlagSet, args []string) {
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	releases := flags.String("releases", "3.4.14,3.9.5", "releases of ZooKeeper, or all: "+allReleases)
	rounds := flags.Int("rounds", 2, "how often each server is killed")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()), "decides loads and kills, as far as time does not")
	corpus := flags.String("corpus", "", "write the corpus of internal/testkit/zkcorpus into this directory, and test nothing")
	directories := flags.String("directories", "", "instead, start ZooKeeper on the directories of "+
		"TestDirectories: compare with what is recorded, or record")
	live := flags.String("live", "", "instead, migrate a running ensemble of this release, such as 3.9.5")
	must.Parsed(flags.Parse(args))
	if *releases == "all" {
		*releases = allReleases
	}
	w := &world{ctx: ctx, work: must.Get(os.MkdirTemp("", "gozkd-moving-")), rng: rand.New(rand.NewPCG(*seed, 0))}
	defer must.Finally(func() error { return os.RemoveAll(w.work) })
	if *corpus == "" && *directories == "" {
		w.own = server.KindNamed(ctx, server.Gozkd, *binary, w.work)
	}
	if *directories != "" {
		w.directories(install.Root(ctx), *directories == "record")
		return
	}
	fmt.Printf("seed %d\n", *seed)
	if *live != "" {
		w.live(*live)
		return
	}
	for i, release := range strings.Split(*releases, ",") {
		must.Doing("ZooKeeper "+release, func() {
			if *corpus != "" {
				w.corpus(*corpus, release, i)
				return
			}
			w.release(release, *rounds, i)
		})
	}
}

// compressions are the values of snapshot.compression.method, which exists since 3.6.
var compressions = []string{"", "gz", "snappy"}

// release tests a release of ZooKeeper.
func (w *world) release(release string, rounds, n int) {
	dir := filepath.Join(w.work, release)
	data, logs := filepath.Join(dir, "data"), filepath.Join(dir, "log")
	must.Do(os.MkdirAll(dir, 0o755))
	var imported string
	for round := range rounds {
		compression := compressions[(n+round)%len(compressions)]
		zk := w.zooKeeper(release, data, logs, compression)
		l := startLoad(w.ctx, zk.Addr(), release, w.rng, 6, 3000+w.rng.IntN(6000))
		must.Do(l.awaitEnough(w.ctx))
		must.Do(zk.Kill())
		sessions := l.wait()

		imported = filepath.Join(dir, fmt.Sprintf("import-%d", round))
		r := w.imports(imported, data+":"+logs)
		var logged map[string]string
		if !since36(release) {
			logged = loggedACLs(logs)
		}
		if since36(release) && r.Compared == 0 {
			must.Failf("no digest was compared, of %d transactions", r.Records)
		}
		zk = w.restarted(release, data, logs, compression)
		want := readTree(w.ctx, zk.Addr())
		must.Do(zk.Stop())
		copied := filepath.Join(dir, fmt.Sprintf("serve-%d", round))
		must.Do(os.CopyFS(copied, os.DirFS(imported))) // a start of the server changes it
		own := must.Get(w.own.Start(w.ctx, server.Options{DataDir: copied, Keys: keys("")}))
		got := readTree(w.ctx, own.Addr())
		if wrong := compareTrees(want, got, logged); wrong > 0 {
			fmt.Printf("%-7s round %d: this ZooKeeper gave %d znodes the ACL of another one when it started; the import has those of its log\n", release, round+1, wrong)
		}
		resumed := resume(w.ctx, own.Addr(), sessions)
		must.Do(own.Stop())
		fmt.Printf("%-7s round %d %-6s: %d znodes, %d sessions, %d of them resumed, %d transactions, %d digests, torn %d\n",
			release, round+1, compression, r.Znodes, r.Sessions, resumed, r.Records, r.Compared, len(r.Torn))
		if resumed == 0 {
			must.Failf("no session was resumed of %d", len(sessions))
		}
		w.back(release, dir, imported, got, sessions, round)
	}
}

// back moves an imported state to ZooKeeper, and from there to gozkd again.
func (w *world) back(release, dir, imported string, want map[string]znode, sessions []sessionID, round int) {
	if !since35(release) {
		release = "3.9.5" // 3.4 knows no containers
	}
	data := filepath.Join(dir, fmt.Sprintf("export-%d", round))
	w.run("export", "--zookeeper", data, "--from", imported, "--for", release[:3])
	zk := w.zooKeeper(release, data, data, "")
	compareTrees(want, readTree(w.ctx, zk.Addr()), nil)
	resumed := resume(w.ctx, zk.Addr(), sessions)
	must.Do(zk.Kill())
	if resumed == 0 {
		must.Failf("ZooKeeper resumed no session of %d", len(sessions))
	}
	if round == 0 {
		w.trial(release, dir, imported)
		w.backToEnsemble(release, dir, imported, want, sessions)
	}
	again := filepath.Join(dir, fmt.Sprintf("again-%d", round))
	r := w.imports(again, data)
	own := must.Get(w.own.Start(w.ctx, server.Options{DataDir: again, Keys: keys("")}))
	compareTrees(want, readTree(w.ctx, own.Addr()), nil)
	must.Do(own.Stop())
	fmt.Printf("%-7s round %d back  : %d znodes, %d sessions, %d digests\n", release, round+1, r.Znodes, r.Sessions, r.Compared)
}

// trial opens sessions on a gozkd with the imported state and gozkd.zookeeperPasswords, and takes
// all of them up, with their ephemeral znodes, on the ZooKeeper that starts from an export.
func (w *world) trial(release, dir, imported string) {
	data, back := filepath.Join(dir, "trial"), filepath.Join(dir, "trial-export")
	must.Do(os.CopyFS(data, os.DirFS(imported)))
	k := keys("")
	k["gozkd.zookeeperPasswords"] = "true"
	own := must.Get(w.own.Start(w.ctx, server.Options{DataDir: data, Keys: k}))
	var sessions []sessionID
	for i := range 3 {
		c := must.Get(rawclient.Dial(w.ctx, own.Addr()))
		defer must.Finally(c.Close)
		resp := must.Get(c.Handshake(rawclient.NewSession(sessionMs), timeout))
		sessions = append(sessions, sessionID{resp.SessionID, slices.Clone(resp.Passwd)})
		r := proto.CreateRequest{Path: fmt.Sprintf("/trial-%d", i), ACL: proto.OpenACL(), Mode: proto.ModeEphemeral}
		must.Do(c.Write(rawclient.AppendRequest(nil, 1, proto.OpCreate, r.Append(nil, proto.OpCreate)), timeout))
		must.Get(c.ReadFrame(timeout))
	}
	must.Do(own.Kill())
	w.run("export", "--zookeeper", back, "--from", data, "--for", release[:3])
	zk := w.zooKeeper(release, back, back, "")
	resumed, tree := resume(w.ctx, zk.Addr(), sessions), readTree(w.ctx, zk.Addr())
	must.Do(zk.Kill())
	for i := range sessions {
		if _, there := tree[fmt.Sprintf("/trial-%d", i)]; !there {
			must.Failf("the ephemeral znode of session %d of the trial is gone", i)
		}
	}
	if resumed != len(sessions) {
		must.Failf("ZooKeeper resumed %d of %d sessions that began on gozkd", resumed, len(sessions))
	}
	fmt.Printf("%-7s trial back    : %d sessions that began on gozkd resumed\n", release, resumed)
}

// backToEnsemble moves an imported state to three ZooKeeper servers, and compares the state of
// each.
func (w *world) backToEnsemble(release, dir, imported string, want map[string]znode, sessions []sessionID) {
	data := filepath.Join(dir, "export-ensemble")
	w.run("export", "--zookeeper", data, "--from", imported)
	e := must.Get(w.kind(release).StartEnsemble(w.ctx, server.EnsembleOptions{Members: 3, Keys: keys(""), Prepare: func(to string) error {
		return os.CopyFS(filepath.Join(to, "version-2"), os.DirFS(filepath.Join(data, "version-2")))
	}}))
	defer must.Finally(e.Stop)
	for _, addr := range e.Addrs() {
		compareTrees(want, readTree(w.ctx, addr), nil)
	}
	resumed := resume(w.ctx, e.Addrs()[2], sessions)
	fmt.Printf("%-7s to three servers: each serves the same, %d sessions resumed\n", release, resumed)
	if resumed == 0 {
		must.Failf("an ensemble of ZooKeeper resumed no session of %d", len(sessions))
	}
}

// report is the output of `gozkd import --json`.
type report struct {
	Znodes, Sessions int
	Records          int64    `json:"transactions"`
	Compared         int64    `json:"digests_equal"`
	Torn             []string `json:"incomplete_records"`
}

func (w *world) imports(into string, from string) (r report) {
	must.Do(json.Unmarshal([]byte(w.run("import", from, "--into", into, "--json")), &r))
	return r
}

// run runs a command of gozkd and returns its output.
func (w *world) run(args ...string) string { return install.Output(w.ctx, "", w.own.Binary(), args...) }

// kind returns a version of ZooKeeper.
func (w *world) kind(version string) *server.Kind {
	k := server.KindNamed(w.ctx, server.ZooKeeper+version, "", "")
	return &k
}

func (w *world) zooKeeper(release, data, logs, compression string) *server.Process {
	return must.Get(w.tryZooKeeper(release, data, logs, compression))
}

func (w *world) tryZooKeeper(release, data, logs, compression string) (*server.Process, error) {
	k := keys(compression)
	if logs != data {
		k["dataLogDir"] = logs
	}
	return w.kind(release).Start(w.ctx, server.Options{DataDir: data, Keys: k})
}

// restarted starts a killed ZooKeeper again. The start may fail with "Failed to fetch acls": a
// snapshot begins with the ACLs, and a znode that gets another ACL while the snapshot is written
// names an ACL that is not in that list. Then restarted removes the newest snapshot, as an operator
// would; the snapshot before and the logs give the same state.
func (w *world) restarted(release, data, logs, compression string) *server.Process {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		zk, err := w.tryZooKeeper(release, data, logs, compression)
		if err == nil {
			return zk
		}
		dir := filepath.Join(data, "version-2")
		snapshots := filesByZxid(dir, "snapshot")
		if attempt == attempts || len(snapshots) < 2 {
			must.Failf("%w", err)
		}
		newest := snapshots[len(snapshots)-1]
		fmt.Printf("%-7s does not start from its own %s, which is removed: %v\n", release, newest, err)
		must.Do(os.Remove(filepath.Join(dir, newest)))
	}
}

func (w *world) start(release, data string, k map[string]string) *server.Process {
	return must.Get(w.kind(release).Start(w.ctx, server.Options{DataDir: data, Keys: k}))
}

// keys returns a zoo.cfg for a server that deletes nothing by itself and makes many snapshots.
func keys(compression string) map[string]string {
	k := server.Defaults()
	k["tickTime"] = "2000"
	k["znode.container.checkIntervalMs"] = "3600000"
	k["snapCount"] = "400"
	k["preAllocSize"] = "1024"
	k["maxSessionTimeout"] = "600000"
	k["authProvider.1"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
	if compression != "" {
		k["snapshot.compression.method"] = compression
	}
	return k
}

func since35(release string) bool { return release >= "3.5" }
func since36(release string) bool { return release >= "3.6" }
