package shell

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/server"
)

// treeServer starts a server and returns its address.
func treeServer(t *testing.T, words ...string) string {
	t.Helper()
	return startServer(t, server.Config{Words: words}).ConnectString()
}

// startServer starts a server, which ends with the test.
func startServer(t *testing.T, cfg server.Config) *server.Server {
	t.Helper()
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// onServer runs one command on a server.
func onServer(t *testing.T, address, in string, words ...string) (status int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	env := cli.Env{In: strings.NewReader(in), Out: &o, Err: &e, Getenv: func(string) string { return "" }}
	status = Main(t.Context(), append([]string{"-server", address}, words...), env)
	return status, o.String(), e.String()
}

// plant creates the tree for the tests.
func plant(t *testing.T, address string) {
	t.Helper()
	const script = `create /app 1
create /app/config 22
create /app/config/db "host=a"
create /app/locks
create -s /app/locks/lock- 333
create /app/zeta
set -b /app/zeta gIGC
`
	if status, _, errs := onServer(t, address, script); status != cli.OK {
		t.Fatal(errs)
	}
}

func TestTreeCommands(t *testing.T) {
	address := treeServer(t)
	plant(t, address)
	for _, c := range []struct {
		line   string
		status int
		out    string
		errs   string // contained in standard error
	}{
		{"tree /app", 0, "/app\n├── config\n│   └── db\n├── locks\n│   └── lock-0000000000\n└── zeta\n", "6 znodes, 15 B"},
		{"tree -L 1 -s /app", 0, "/app [1 B]\n├── config [2 B]\n├── locks [0 B]\n└── zeta [3 B]\n", ""},
		{"tree -L x /app", 2, "", "-L must be a number"},
		{"tree /none", 1, "", "Node does not exist: /none"},
		{"tree app", 2, "", "Path must start with / character"},
		{"watch app", 2, "", "Path must start with / character"},
		{"getEphemerals /app/", 2, "", "Path must not end with / character"},
		{"setquota -n 1 /app/", 2, "", "Path must not end with / character"},
		{"setquota -n 1 /", 2, "", "Path must not end with / character"},
		{"-output json tree -L 0 /app", 0, `{"path":"/app","dataLength":1,"numChildren":3}` + "\n", ""},
		{"find -name lock-* /app", 0, "/app/locks/lock-0000000000\n", ""},
		{"find -type s /", 0, "/app/locks/lock-0000000000\n", ""},
		{"find -type e /app", 0, "", ""},
		{"find -data ^host=. -name d? /app", 0, "/app/config/db\n", ""},
		{"find -owner 0x77 /app", 0, "", ""},
		{"find -data ( /app", 2, "", "missing closing"},
		{"find -name [ /app", 2, "", "syntax error in pattern"},
		{"find -owner you /app", 2, "", "-owner must be a session id"},
		{"du /app", 0, "         bytes     znodes  path\n             8          2  /app/config\n             3          2  /app/locks\n" +
			"             3          1  /app/zeta\n            15          6  /app (all)\n", ""},
		{"du -n 1 -h /app", 0, "         bytes     znodes  path\n           8 B          2  /app/config\n           6 B          3  (2 more)\n" +
			"          15 B          6  /app (all)\n", ""},
		{"-output json du -d 0 /app", 0, `{"total":{"path":"/app","znodes":6,"bytes":15},"below":[]}` + "\n", ""},
		{"du -n 0 /app", 2, "", "-n must be a number of at least 1"},
		{"cp /app /one", 0, "", "Copied 1 znode in one transaction"},
		{"cp -r /app /all", 0, "", "Copied 6 znodes in one transaction"},
		{"diff /app /all", 0, "", "6 the same, 0 different"},
		{"diff /app /one", 1, "- /config\n- /config/db\n- /locks\n- /locks/lock-0000000000\n- /zeta\n", "1 the same, 5 different"},
		{"diff /one " + address + "/app/zeta", 1, "! / (data)\n", ""},
		{"diff /one 127.0.0.1:1/app", 1, "", "127.0.0.1:1: "},
		{"mv /all /app/moved", 0, "", "Moved 6 znodes in one transaction"},
		{"create /two", 0, "", "Created"}, // numbers end at 2147483647 and go on below zero
		{"create /two/n2147483648", 0, "", "Created"},
		{"create /two/n-000000001", 0, "", "Created"},
		{"find -type s /two", 0, "/two/n-000000001\n", ""},
		{"mv /app /app/x", 1, "", "is /app or below it"},
		{"mv /one " + address + "/two", 1, "", "only within one ensemble"},
		{"cp /one", 2, "", "cp [-r] [--counters N] [-q] source target"},
		{"import /x", 1, "", "not an export"},
		{"import -u -k /x", 2, "", "exclude each other"},
		{"import /x /no/such/file", 1, "", "no such file"},
	} {
		status, out, errs := onServer(t, address, "", strings.Fields(c.line)...)
		if status != c.status || out != c.out || !strings.Contains(errs, c.errs) {
			t.Errorf("%s: status %d, out\n%s\nerr\n%s", c.line, status, out, errs)
		}
	}
}

// TestExportImport_Commands: through standard output and input, through a file, and to another
// server.
func TestExportImport_Commands(t *testing.T) {
	a, b := treeServer(t), treeServer(t)
	plant(t, a)
	status, text, errs := onServer(t, a, "", "export", "/app")
	if status != cli.OK || !strings.Contains(errs, "Exported 6 znodes, 15 B") {
		t.Fatal(status, errs)
	}
	// The JSON output is the same text, except for the zxid in its head.
	_, same, _ := onServer(t, a, "", "-output", "json", "export", "/app")
	_, want, _ := strings.Cut(text, "\n")
	if _, got, _ := strings.Cut(same, "\n"); got != want || want == "" {
		t.Errorf("%s", same)
	}
	if status, _, errs := onServer(t, b, text, "import", "/here"); status != cli.OK || errs != "Created 6 znodes\n" {
		t.Error(status, errs)
	}
	if status, out, _ := onServer(t, a, "", "diff", "/app", b+"/here"); status != cli.OK || out != "" {
		t.Error(status, out)
	}
	name := filepath.Join(t.TempDir(), "app.export")
	if status, _, errs := onServer(t, a, "", "export", "/app", name); status != cli.OK {
		t.Fatal(errs)
	}
	if b, err := os.ReadFile(name); err != nil || !strings.Contains(string(b), `{"path":"/zeta","data_base64":"gIGC"}`) {
		t.Errorf("%s, %v", b, err)
	}
	if status, _, errs := onServer(t, b, "", "import", "-k", "/here", name); status != cli.OK || errs != "Created 0 znodes, kept 6 existing\n" {
		t.Error(status, errs)
	}
	// A script occupies standard input.
	if status, _, errs := onServer(t, b, "import /there\n"); status != cli.Usage || !strings.Contains(errs, "name a file") {
		t.Error(status, errs)
	}
	// An incomplete file must not remain.
	bad := filepath.Join(t.TempDir(), "none.export")
	if status, _, _ := onServer(t, a, "", "export", "/none", bad); status != cli.Failed {
		t.Error(status)
	}
	if left, err := filepath.Glob(filepath.Dir(bad) + "/*"); err != nil || left != nil {
		t.Errorf("%q, %v", left, err)
	}
}

// TestCounters_Commands: commands keep sequence counters within the limit, and name those that stay
// behind.
func TestCounters_Commands(t *testing.T) {
	a := treeServer(t)
	plant(t, a)
	if status, _, errs := onServer(t, a, "create -s /app/locks/lock-\ndelete /app/locks/lock-0000000001\n"); status != cli.OK {
		t.Fatal(errs)
	}
	_, text, _ := onServer(t, a, "", "export", "/app")
	const behind = "/locks: its sequence counter stays 1 behind, so numbers repeat: allow that many creations with --counters\n"
	for _, c := range []struct{ line, to, warning, next string }{
		{"import /i", "/i", "", "2"},
		{"import --counters 0 /i0", "/i0", "/i0" + behind, "1"},
		{"cp -r /app /c", "/c", "", "2"},
		{"cp -r --counters 0 /app /c0", "/c0", "/c0" + behind, "1"},
		{"mv --counters 0 /c /m0", "/m0", "/m0" + behind, "2"},
		{"mv /app /m", "/m", "", "2"},
	} {
		status, _, errs := onServer(t, a, text, strings.Fields(c.line)...)
		if status != cli.OK || !strings.HasSuffix(errs, c.warning) || strings.Contains(errs, "counter") != (c.warning != "") {
			t.Errorf("%s: status %d, %s", c.line, status, errs)
		}
		if _, out, errs := onServer(t, a, "", "create", "-s", c.to+"/locks/"+c.line[:1]); out+errs != "Created "+c.to+"/locks/"+c.line[:1]+"000000000"+c.next+"\n" {
			t.Errorf("%s: %s%s", c.line, out, errs)
		}
	}
	// A limit that leaves numbers to repeat is a failure, unless it is 0.
	for i := 3; i < 6; i++ {
		onServer(t, a, fmt.Sprintf("create -s /m/locks/m\ndelete /m/locks/m000000000%d\n", i))
	}
	_, text, _ = onServer(t, a, "", "export", "/m")
	for line, want := range map[string]int{"import --counters 1 /j": cli.Failed, "import --counters 0 /j0": cli.OK, "cp -r --counters 1 /m /n": cli.Failed} {
		status, _, errs := onServer(t, a, text, strings.Fields(line)...)
		if status != want || !strings.Contains(errs, "behind, so numbers repeat") {
			t.Errorf("%s: status %d, want %d: %s", line, status, want, errs)
		}
	}
	if status, _, errs := onServer(t, a, text, "import", "--counters", "x", "/x"); status != cli.Usage || !strings.Contains(errs, "--counters must be") {
		t.Error(status, errs)
	}
}

// TestExport_Denied: an unreadable znode is named, and the export fails.
func TestExport_Denied(t *testing.T) {
	a := treeServer(t)
	plant(t, a)
	if status, _, errs := onServer(t, a, "setAcl /app/config world:anyone:w\n"); status != cli.OK {
		t.Fatal(errs)
	}
	if status, _, errs := onServer(t, a, "", "export", "/app"); status != cli.Failed || !strings.Contains(errs, "insufficient permission : /app/config") {
		t.Error(status, errs)
	}
	if status, out, errs := onServer(t, a, "", "find", "-name", "zeta", "/app"); status != cli.Failed || out != "/app/zeta\n" ||
		!strings.Contains(errs, "Insufficient permission : /app/config") {
		t.Error(status, out, errs)
	}
}

// TestKinds: containers and TTL znodes keep their kind if the server reports it; otherwise the user
// is told.
func TestKinds(t *testing.T) {
	a, b := treeServer(t, "kind"), treeServer(t)
	const script = `create /app
create -c /app/c
create -t 60000 /app/t
create -e /app/e
`
	if status, _, errs := onServer(t, a, script); status != cli.OK {
		t.Fatal(errs)
	}
	const want = `{"path":"/c","kind":"container"}
{"path":"/t","kind":"ttl","ttl_ms":60000}
`
	_, text, errs := onServer(t, a, "", "export", "/app")
	if !strings.Contains(text, want) || strings.Contains(errs, "Containers") {
		t.Errorf("%s%s", text, errs)
	}
	_, below, _ := onServer(t, a+"/app", "", "export", "/t") // a session with a chroot has different paths
	if !strings.Contains(below, `{"path":"/","kind":"ttl","ttl_ms":60000}`) {
		t.Errorf("with a chroot: %s", below)
	}
	for _, copied := range []string{"cp -r /app /copy", "mv /copy /moved"} {
		if status, _, errs := onServer(t, a, "", strings.Fields(copied)...); status != cli.OK {
			t.Fatal(copied, errs)
		}
	}
	if _, text, _ := onServer(t, a, "", "export", "/moved"); !strings.Contains(text, want) {
		t.Errorf("moved: %s", text)
	}
	// After the import to a server without the word, the kind is unknown.
	if status, _, errs := onServer(t, b, text, "import", "/app"); status != cli.OK {
		t.Fatal(errs)
	}
	if status, text, errs := onServer(t, b, "", "export", "/app"); status != cli.OK || strings.Contains(text, "container") ||
		!strings.Contains(errs, "Containers and TTL znodes are treated as persistent: add kind to 4lw.commands.whitelist") {
		t.Errorf("%s%s", text, errs)
	}
}

// A copy below its source over another connection, where the ensemble is not recognized as the
// same. The copy must end.
func TestCopy_BelowItself(t *testing.T) {
	address := treeServer(t)
	var script strings.Builder
	script.WriteString("create /big\n")
	for i := range 1200 { // more than one multi, so that a part exists when the walk reaches z
		fmt.Fprintf(&script, "create /big/a%04d\n", i)
	}
	script.WriteString("create /big/z\n")
	if status, _, errs := onServer(t, address, script.String()); status != cli.OK {
		t.Fatal(errs)
	}
	status, _, errs := onServer(t, address, "", "cp", "-r", "/big", address+"/big/z/copy")
	if status != cli.OK || !strings.Contains(errs, "Copied 1202 znodes, not in one transaction") {
		t.Errorf("status %d: %s", status, errs)
	}
	if status, out, _ := onServer(t, address, "", "getAllChildrenNumber", "/big/z/copy"); status != cli.OK || out != "1201\n" {
		t.Errorf("status %d: %s", status, out)
	}
}

// withoutHead removes the line with the zxid.
func withoutHead(export string) string {
	_, rest, _ := strings.Cut(export, "\n")
	return rest
}

// "-" means standard output for export and standard input for import.
func TestExport_Dash(t *testing.T) {
	t.Chdir(t.TempDir())
	address := treeServer(t)
	plant(t, address)
	_, want, _ := onServer(t, address, "", "export", "/app")
	if status, out, errs := onServer(t, address, "", "export", "/app", "-"); status != cli.OK || withoutHead(out) != withoutHead(want) {
		t.Errorf("status %d: %q, %s", status, out, errs)
	}
	if status, _, errs := onServer(t, address, want, "import", "/app2", "-"); status != cli.OK {
		t.Error(errs)
	}
	if status, out, errs := onServer(t, address, "", "diff", "/app", "/app2"); status != cli.OK {
		t.Error(out, errs)
	}
}
