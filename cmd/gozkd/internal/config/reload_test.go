package config

import (
	"slices"
	"testing"

	"github.com/gozkd/gozkd/server"
)

// Server.Reload changes the field of each key that can change at runtime. Otherwise the log would
// say that the key has changed, and nothing would happen.
func TestTable_ReloadsLikeTheServer(t *testing.T) {
	load := func(args ...string) (Config, error) {
		_, c, err := Load(append([]string{"--memory"}, args...), func(string) string { return "" }, nil)
		return c, err
	}
	first, err := load()
	if err != nil {
		t.Fatal(err)
	}
	values := []string{"true", "false", "7", "70000", "0.25", "*", "CN=a", "cn", "super:xQJm", "off", "want", "none", "JKS", "PEM",
		"TLSv1.2", "TLSv1.3", "ip", "sasl"}
	var unseen []string
	for _, k := range keys {
		if !k.reload {
			continue
		}
		unseen = append(unseen, k.name)
		for _, v := range values {
			next, err := load("-o", k.name+"="+v)
			if err != nil {
				continue
			}
			if changed, _ := first.Changes(next); !slices.Contains(changed, k.name) {
				continue
			}
			s, err := server.New(first.ForServer())
			if err != nil {
				t.Fatal(err)
			}
			if restart, err := s.Reload(next.ForServer()); err != nil || restart != nil {
				t.Errorf("%s=%s: the server wants a restart for %v, %v", k.name, v, restart, err)
			}
			unseen = unseen[:len(unseen)-1]
			break
		}
	}
	// These need files, or other keys beside them.
	others := []string{"admin.needClientAuth", "client.portUnification", jaasFile, saslUserFile, enforceEnabled}
	if !slices.Equal(unseen, others) {
		t.Errorf("no value changes %q, want those of %q only", unseen, others)
	}
}
