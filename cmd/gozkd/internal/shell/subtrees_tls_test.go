package shell

import (
	"strings"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/server"
)

// With the flags of TLS, the other server of a copy and the word kind are reached by TLS too: a
// container stays one, and no credential goes to a port without TLS.
func TestSubtrees_TLS(t *testing.T) {
	cert := testca.New(t, "root").Issue(t, testca.Spec{CN: "server", Hosts: []string{"127.0.0.1"}})
	s := startServer(t, server.Config{Words: []string{"kind"}, SecureListen: "127.0.0.1:0", TLS: cert.Server()})
	secure, plain := s.SecureAddr().String(), s.ConnectString()
	by := func(words ...string) ranCLI {
		t.Helper()
		files := cert.Files(t)
		return runCLI(t, "", nil, append([]string{"-server", secure, "--cacert", files.CA, "--cert", files.Key}, words...)...)
	}
	if got := by("create", "-c", "/a"); got.status != cli.OK {
		t.Fatalf("%+v", got)
	}
	if got, want := by("cp", "/a", secure+"/b"), "Copied 1 znode, not in one transaction: others may have seen a part\n"; got.status != cli.OK || got.err != want {
		t.Errorf("%+v, want %s", got, want)
	}
	if got := by("diff", "/a", secure+"/b"); got.status != cli.OK {
		t.Errorf("%+v", got)
	}
	if got := by("export", "/b"); !strings.Contains(got.out, `"kind":"container"`) {
		t.Errorf("%+v", got)
	}
	if got := by("cp", "/a", plain+"/c"); got.status != cli.Failed {
		t.Errorf("to a port without TLS: %+v", got)
	}
}
