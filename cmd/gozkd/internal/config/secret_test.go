package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestSecret_File(t *testing.T) {
	const secret = "c2l4dGVlbiBieXRlcyBhdCBsZWFzdA=="
	for _, c := range []struct {
		name, content string
		perm          os.FileMode
		want          string // of the problem
	}{
		{"good", secret + "\n", 0o600, ""},
		{"group", "  " + secret, 0o440, ""},
		{"readable by all", secret, 0o644, "chmod o= "},
		{"writable by all", secret, 0o602, "chmod o= "},
		{"empty", "", 0o600, "a secret of 0 bytes"},
		{"blank", strings.Repeat(" \n", 100), 0o600, "a secret of 0 bytes"},
		{"short", "fifteen bytes..", 0o600, "a secret of 15 bytes"},
		{"too long", strings.Repeat("x", maxSecretFile+1), 0o600, "more than 4096 bytes"},
		{"missing", "", 0, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && (strings.Contains(c.want, "chmod") || c.perm == 0) {
				t.Skip("another text, or no such permissions")
			}
			path := filepath.Join(t.TempDir(), "secret")
			if c.perm != 0 {
				if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, c.perm); err != nil {
					t.Fatal(err)
				}
			}
			r := newResolver()
			r.set(setting{key: "gozkd.peer.secretFile", value: path, from: Origin{Source: "zoo.cfg", Line: 3, layer: fromFile}})
			cfg := r.resolve(false)
			var problem string
			for _, p := range r.problems {
				if strings.Contains(p.String(), "secretFile") {
					problem = p.String()
				}
			}
			switch {
			case c.want == "" && (problem != "" || string(cfg.Server.PeerSecret) != secret):
				t.Errorf("the secret is %q, problem %q", cfg.Server.PeerSecret, problem)
			case c.want != "" && (!strings.Contains(problem, c.want) || !strings.Contains(problem, path) || cfg.Server.PeerSecret != nil):
				t.Errorf("the secret is %q, problem %q, want %q", cfg.Server.PeerSecret, problem, c.want)
			case len(strings.TrimSpace(c.content)) > 0 && strings.Contains(problem, strings.TrimSpace(c.content)):
				t.Errorf("problem %q shows the secret", problem)
			}
		})
	}
}

// Who reads the token is an administrator.
func TestAdminToken_ReadableByAll(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are others on Windows")
	}
	token := privateFile(t, "a-token-for-administrators")
	lines := "dataDir=/d\ngozkd.admin.tokenFile=" + token
	wantLines(t, good(t, lines, nil).Warnings)
	if err := os.Chmod(token, 0o644); err != nil {
		t.Fatal(err)
	}
	wantLines(t, good(t, lines, nil).Warnings,
		"zoo.cfg:2: gozkd.admin.tokenFile: is "+token+": its permissions are 0644, so every user of this machine can use it: run chmod o= "+token)
	wantLines(t, good(t, lines+"\nadmin.enableServer=false", nil).Warnings)
}
