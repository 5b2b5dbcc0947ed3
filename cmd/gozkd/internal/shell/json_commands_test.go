package shell

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/zktest"
)

// TestJSON_Commands checks that each command prints the values that docs/reference/shell.md
// promises. The lines are one script.
func TestJSON_Commands(t *testing.T) {
	server := zktest.Start(t)
	file := filepath.Join(t.TempDir(), "a.json")
	const stat = `{"czxid":"0xN","mzxid":"0xN","ctime":N,"mtime":N,"version":N,"cversion":N,"aversion":N,` +
		`"ephemeralOwner":"0xN","dataLength":N,"numChildren":N,"pzxid":"0xN"}`
	const done = "{}"
	script := []struct {
		line string
		want []string // on standard output
	}{
		{"create /a <one>", []string{`{"path":"/a"}`}},
		{"create -s /a/s", []string{`{"path":"/a/s0000000000"}`}},
		{"get /a", []string{`{"path":"/a","data":"<one>"}`}},
		{"get -s /a", []string{`{"path":"/a","data":"<one>","stat":` + stat + `}`}},
		{"get -b /a", []string{`{"path":"/a","data_base64":"PG9uZT4="}`}},
		{"get /a/s0000000000", []string{`{"path":"/a/s0000000000","data":null}`}},
		{"set /a two", []string{done}},
		{"set -s /a two", []string{`{"path":"/a","stat":` + stat + `}`}},
		{"ls /", []string{`{"path":"/","children":["a","zookeeper"]}`}},
		{"ls -s /zookeeper/config", []string{`{"path":"/zookeeper/config","children":[],"stat":` + stat + `}`}},
		{"ls -R /a", []string{`["/a","/a/s0000000000"]`}},
		{"stat /a", []string{`{"path":"/a","stat":` + stat + `}`}},
		{"getAllChildrenNumber /a", []string{`{"path":"/a","count":1}`}},
		{"getAcl /a", []string{`{"path":"/a","acl":[{"scheme":"world","id":"anyone","perms":"cdrwa"}]}`}},
		{"setAcl /a world:anyone:cdrwa", []string{done}},
		{"getEphemerals", []string{`[]`}},
		{"addauth digest me:secret", []string{done}},
		{"whoami", []string{`[{"scheme":"digest","user":"me"},{"scheme":"ip","user":"127.0.0.1"}]`}},
		{"sync /a", []string{`{"path":"/a"}`}},
		{"addWatch /a", []string{done}},
		{"removewatches /a", []string{done}},
		{"setquota -n 5 /a", []string{done}},
		{"listquota /a", []string{`{"path":"/a","quota":{"byteHardLimit":-1,"bytes":-1,"count":5,"countHardLimit":-1},"stat":{"bytes":N,"count":N}}`}},
		{"setquota -r 100 /a", []string{done}},
		{"setquota -w 5000 /a", []string{done}},
		{"setquota -r 7 sasl:b/c", []string{done}},
		{"setquota -r 0 /a", nil},
		{"setquota -r 5 world:anyone", nil},
		{"setquota -r 5 auth:a", nil},
		{"setquota -r 5 super:", nil},
		{"setquota -r 5 ip:", nil},
		{"setquota -r 5 :a", nil},
		{"setquota -r 1 /zookeeper", nil},
		{"setquota -r 1 /none", nil},
		{"get /zookeeper/quota/zookeeper/identities/sasl:b%2Fc/zookeeper_budget", []string{
			`{"path":"/zookeeper/quota/zookeeper/identities/sasl:b%2Fc/zookeeper_budget","data":"count=-1,bytes=-1=;opsPerSecond=7"}`,
		}},
		{"set /zookeeper/quota/zookeeper/identities/sasl:b%2Fc/zookeeper_budget many", []string{done}},
		{"setquota -r 9 sasl:b/c", []string{done}},
		{"get /zookeeper/quota/zookeeper/identities/sasl:b%2Fc/zookeeper_budget", []string{
			`{"path":"/zookeeper/quota/zookeeper/identities/sasl:b%2Fc/zookeeper_budget","data":"count=-1,bytes=-1=;opsPerSecond=9"}`,
		}},
		{"set /zookeeper/quota/zookeeper/identities/sasl:b%2Fc/zookeeper_budget many", []string{done}},
		{"delquota -w sasl:b/c", []string{done}},
		{"delquota sasl:b/c", []string{done}},
		{"delquota sasl:b/c", nil},
		{"ls /zookeeper/quota", []string{`{"path":"/zookeeper/quota","children":["a"]}`}},
		{"listquota /a", []string{`{"path":"/a","quota":{"byteHardLimit":-1,"bytes":-1,"count":5,"countHardLimit":-1},"stat":{"bytes":N,"count":N},` +
			`"budget":{"bytes":-1,"bytesPerSecond":5000,"count":-1,"opsPerSecond":100}}`}},
		{"delquota -r /a", []string{done}},
		{"delquota /a", []string{done}},
		{"ls /zookeeper/quota", []string{`{"path":"/zookeeper/quota","children":[]}`}},
		{"setquota -r 5 /a", []string{done}},
		{"delquota -n /a", nil},
		{"listquota /a", []string{`{"path":"/a","quota":null,"stat":null,` +
			`"budget":{"bytes":-1,"count":-1,"opsPerSecond":5}}`}},
		{"delquota /a", []string{done}},
		{"listquota /a", nil},
		{"config", []string{`{"config":""}`}},
		{"reconfig -remove 9", nil}, // a standalone server refuses
		{"tree /a", []string{`{"path":"/a","dataLength":3,"numChildren":1}`, `{"path":"/a/s0000000000","dataLength":0,"numChildren":0}`}},
		{"find -name s* /a", []string{`{"path":"/a/s0000000000","dataLength":0,"numChildren":0}`}},
		{"find -name none /a", nil},
		{"du /a", []string{`{"total":{"path":"/a","znodes":2,"bytes":3},"below":[{"path":"/a/s0000000000","znodes":1,"bytes":0}]}`}},
		{"cp -r /a /b", []string{`{"created":2,"atomic":true}`}},
		{"diff /a /b", nil},
		{"mv /b /c", []string{`{"created":2,"deleted":2,"atomic":true}`}},
		{"export /c", []string{`{"gozkd_export":1,"root":"/c","zxid":"0xN"}`, `{"path":"/","data":"two","creations":1}`, `{"path":"/s0000000000"}`, `{"end":true,"znodes":2}`}},
		{"export /c " + file, nil},
		{"deleteall /c", []string{done}},
		{"import /c " + file, []string{`{"created":2}`}},
		{"delete /c/s0000000000", []string{done}},
		{"delete /none", nil},
		{"edit /c", []string{`{"path":"/c","changed":false}`}},
		{"printwatches", []string{`{"printwatches":true}`}},
		{"printwatches off", []string{done}},
		{"help stat", []string{`[{"name":"stat","args":"[-w] path","about":"print a znode's Stat","flags":[{"name":"-w","value":false,"about":"watch"}]}]`}},
		{"version", []string{`{"version":"ANY"}`}},
		{"redo 2", []string{`{"path":"/a","data":"two"}`}},
		{"history", []string{`[{"number":N,"line":"ANY"}REST]`}},
		{"close", []string{done}},
		{"connect " + server.ConnectString(), []string{done}},
		{"quit", []string{done}},
	}
	var in strings.Builder
	var want, tried []string
	for _, s := range script {
		in.WriteString(s.line + "\n")
		want = append(want, s.want...)
		tried = append(tried, strings.Fields(s.line)[0])
	}
	r := runCLI(t, in.String(), map[string]string{"EDITOR": "true"}, "-server", server.ConnectString(), "--output", "json")
	got := strings.Split(strings.TrimSuffix(r.out, "\n"), "\n")
	pattern := strings.NewReplacer("TIME", `[-0-9]+T[:.0-9]+Z`, "0xN", "0x[0-9a-f]+", "N", "-?[0-9]+", "ANY", `[^"]+`, "REST", ".*")
	for i := range min(len(got), len(want)) {
		if !regexp.MustCompile("^" + pattern.Replace(regexp.QuoteMeta(want[i])) + "$").MatchString(got[i]) {
			t.Errorf("line %d is\n%s\nwant\n%s", i+1, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d lines, want %d:\n%s", len(got), len(want), r.out)
	}
	for line := range strings.Lines(r.err) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil || len(v) != 1 || v["error"] == nil && v["event"] == nil && v["note"] == nil {
			t.Errorf("on standard error: %s", line)
		}
	}
	for _, want := range []string{`{"error":{"code":"RECONFIGDISABLED",`, `{"error":{"code":"NONODE","number":-101,"op":"delete","path":"/none",`, `{"event":{"type":"None","state":"SyncConnected"}}`} {
		if !strings.Contains(r.err, want) {
			t.Errorf("no %s in\n%s", want, r.err)
		}
	}
	for _, c := range newShell(nil, nil, settings{}).commands {
		if c.name != "watch" && !slices.Contains(tried, c.name) { // watch: see TestWatch
			t.Errorf("what %s prints as JSON is not tested here", c.name)
		}
	}
}
