package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// auditLine is a part of a JSON line.
type auditLine struct{ Operation, Result, Znode, Detail string }

func auditLines(t *testing.T, text string) (lines []auditLine) {
	t.Helper()
	for line := range strings.Lines(text) {
		var l auditLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		lines = append(lines, l)
	}
	return lines
}

// awaitFile waits until a file contains a text, and returns its content.
func awaitFile(t *testing.T, path, want string) string {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	late := watchdog.After(t, 20*time.Second)
	for {
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), want) {
			return string(text)
		}
		select {
		case <-poll.C:
		case <-late:
			t.Fatalf("%s has no %q: %v\n%s", path, want, err, text)
		}
	}
}

// The audit log is in the data directory, and goes on in a new file after the old one was renamed
// and the server got SIGHUP.
func TestServe_Audit(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "audit.log")
	p := launch(t, "--data-dir", dir, "--client-port", "0", "-o", "audit.enable=true", "-o", "gozkd.audit.reads=/read",
		"-o", "admin.serverPort=0", "-o", "admin.rateLimiterIntervalInMS=0")
	c := connect(t, p.ports.Client)
	if _, err := c.Create("/a", nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Exists("/read/me"); err != nil {
		t.Fatal(err)
	}
	request(t, http.MethodGet, p.ports.Admin+"/stat_reset")
	request(t, http.MethodGet, p.ports.Admin+"/snapshot", "Authorization", "digest eve:s3cret")
	lines := auditLines(t, awaitFile(t, file, "snapshot"))
	for _, want := range []auditLine{
		{"serverStart", "success", "", ""}, {"openSession", "success", "", ""}, {"create", "success", "/a", ""},
		{"read", "failure", "/read/me", "exists"}, {"adminCommand", "failure", "", "stat_reset"}, {"adminCommand", "failure", "", "snapshot"},
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %+v in %+v", want, lines)
		}
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v %v", info, err)
	}
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	p.Signal(syscall.SIGHUP)
	late := watchdog.After(t, 20*time.Second)
	for begun := false; !begun; { // until the signal has arrived, events go to the old file
		if _, err := c.Set("/a", nil, -1); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(file)
		begun = err == nil
		select {
		case <-late:
			t.Fatal("no new file")
		default:
		}
	}
	if err := c.Delete("/a", -1); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, file, `"delete"`)
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	awaitFile(t, file, "serverStop")
}

// ZooKeeper's format, to standard error; all members of an ensemble write there.
func TestServe_AuditOfZooKeeper(t *testing.T) {
	p := launch(t, "serve", "--memory", "--client-port", "0", "--ensemble", "3", "-o", "tickTime=200", "-o", "audit.enable=true",
		"-o", "gozkd.audit.format=zookeeper", "-o", "audit.impl.class=org.apache.zookeeper.audit.Slf4jAuditLogger")
	put(t, p.ports.Client, "/a")
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	text := p.Stderr.String()
	for want, n := range map[string]int{
		"\toperation=serverStart\tresult=success\n": 3, "\toperation=create\tznode=/a\tznode_type=persistent\tresult=success\n": 1,
		"\toperation=serverStop\tresult=invoked\n": 3, "openSession": 0,
	} {
		if strings.Count(text, want) != n {
			t.Errorf("%d lines with %q, want %d, in\n%s", strings.Count(text, want), want, n, text)
		}
	}
}

// A file that cannot be written costs its lines, one message and nothing else.
func TestServe_AuditCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "--memory", "--client-port", "0", "-o", "audit.enable=true", "-o", "gozkd.audit.file="+filepath.Join(taken, "audit.log"), "-o", "4lw.commands.whitelist=mntr")
	put(t, p.ports.Client, "/a")
	put(t, p.ports.Client, "/b")
	get(t, p.ports.Client, "/a")
	awaitWord(t, p.ports.Client, "mntr", "zk_gozkd_audit_dropped_total")
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if n := strings.Count(p.Stderr.String(), "the audit log cannot be written"); n != 1 {
		t.Errorf("%d messages in\n%s", n, &p.Stderr)
	}
	var stdout, stderr strings.Builder
	status := run("gozkd", []string{"--memory", "--client-port", "0", "-o", "audit.enable=true", "-o", "gozkd.audit.file=" + dir}, outside(&stdout, &stderr))
	if status != 2 || !strings.Contains(stderr.String(), "gozkd.audit.file: is "+dir+", which is a directory") {
		t.Errorf("a directory: %d %s", status, &stderr)
	}
}
