package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// directory is an entry of the list that TestDirectories in cmd/gozkd/internal/zkdata writes.
type directory struct {
	Name           string
	Quorum, LogDir bool
	Flags          []string
}

// answer is ZooKeeper's answer to a directory: a refusal, or the state that it serves.
type answer struct {
	Refuses string `json:",omitempty"` // the last exception
	Zxid    string `json:",omitempty"` // of the last transaction
	Digest  string `json:",omitempty"` // of the tree, as clients see it
	Znodes  int    `json:",omitempty"` // except those below /zookeeper
}

// directories starts ZooKeeper on each directory of TestDirectories, and compares the answers with
// those recorded in testdata beside that test, or records them.
func (w *world) directories(root string, record bool) {
	test := filepath.Join(root, "cmd", "gozkd", "internal", "zkdata")
	file := filepath.Join(test, "testdata", "directories.json")
	install.Output(w.ctx, test, "go", "test", "-run", "^TestDirectories$", ".", "-directories", w.work)
	var list []directory
	must.Do(json.Unmarshal(must.Get(os.ReadFile(filepath.Join(w.work, "list.json"))), &list))
	answers, recorded := make(map[string]answer), make(map[string]answer)
	must.Do(json.Unmarshal(must.Get(os.ReadFile(file)), &recorded))
	differ := 0
	for i, d := range list {
		dir := filepath.Join(w.work, strconv.Itoa(i))
		a := w.answer(d, dir)
		a.Refuses = strings.ReplaceAll(a.Refuses, dir, "DIR")
		answers[d.Name] = a
		if a != recorded[d.Name] {
			differ++
			fmt.Printf("%s: %+v, recorded is %+v\n", d.Name, a, recorded[d.Name])
		}
	}
	fmt.Printf("%d directories, %d answers differ from those recorded\n", len(answers), differ)
	if !record {
		if differ > 0 || len(answers) != len(recorded) {
			must.Failf("%s is out of date: record it with make compat-directories DIRECTORIES=record", file)
		}
		return
	}
	b := must.Get(json.MarshalIndent(answers, "", "\t"))
	must.Do(os.WriteFile(file, append(b, '\n'), 0o644))
}

// answer starts ZooKeeper on a directory.
func (w *world) answer(d directory, dir string) (a answer) {
	k := keys("")
	if d.LogDir {
		k["dataLogDir"] = filepath.Join(dir, "logs")
	}
	if d.Quorum { // alone
		ports := must.Get(server.FreePorts(2))
		k["standaloneEnabled"], k["initLimit"], k["syncLimit"] = "false", "10", "5"
		k["server.1"] = fmt.Sprintf("127.0.0.1:%d:%d", ports[0], ports[1])
	}
	flags := append([]string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}, d.Flags...)
	opts := server.Options{DataDir: filepath.Join(dir, "data"), Keys: k, JVMFlags: flags}
	zk, err := w.kind(server.Maven).Start(w.ctx, opts)
	if err != nil {
		if w.ctx.Err() != nil {
			must.Do(err)
		}
		return answer{Refuses: exception(err.Error())}
	}
	defer must.Finally(zk.Kill)
	if !d.Quorum {
		a.Zxid = zxidNow(w.ctx, zk.Addr())
	}
	var digest uint64
	for path, z := range readTree(w.ctx, zk.Addr()) {
		if !strings.HasPrefix(path, "/zookeeper/") {
			a.Znodes++
		}
		digest += zkfiles.ZnodeDigest(path, []byte(z.data), &zkfiles.Stat{
			Czxid: z.stat.Czxid, Mzxid: z.stat.Mzxid, Pzxid: z.stat.Pzxid,
			CtimeMs: z.stat.CtimeMs, MtimeMs: z.stat.MtimeMs,
			// A client sees twice the creations less the children.
			Version: z.stat.Version, Aversion: z.stat.Aversion, Owner: int64(z.stat.EphemeralOwner),
			Cversion: (z.stat.Cversion + z.stat.NumChildren) / 2,
		})
	}
	a.Digest = fmt.Sprintf("%#x", digest)
	return a
}

// zxidNow returns the last zxid that srvr names.
func zxidNow(ctx context.Context, addr string) string {
	return proto.Zxid(must.Get(strconv.ParseInt(must.Get(server.Srvr(ctx, addr))["Zxid"], 0, 64))).String()
}

// exception returns the last exception in a log without its stack: the cause.
func exception(log string) string {
	line := regexp.MustCompile(`(?m)^(?:Caused by: )?[a-z]+(?:[.$]\w+)+(?:Exception|Error)\b.*$`)
	all := line.FindAllString(log, -1)
	if len(all) == 0 {
		must.Failf("no exception in the log of a ZooKeeper that does not start:\n%s", log)
	}
	return strings.TrimPrefix(all[len(all)-1], "Caused by: ")
}
