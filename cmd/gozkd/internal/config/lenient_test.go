package config

import (
	"fmt"
	"strings"
	"testing"
)

// ZooKeeper compares these values with a single word, in that case. Any other text, such as the
// word in capitals, must neither skip ACLs nor disable syncs.
func TestLoad_ExactWords(t *testing.T) {
	for _, c := range []struct {
		key, value string
		got        func(*Config) bool
		want, warn bool
	}{
		{"skipACL", "yes", func(c *Config) bool { return c.SkipACL }, true, false},
		{"skipACL", "no", func(c *Config) bool { return c.SkipACL }, false, false},
		{"skipACL", "YES", func(c *Config) bool { return c.SkipACL }, false, true},
		{"skipACL", "true", func(c *Config) bool { return c.SkipACL }, false, true},
		{"forceSync", "no", func(c *Config) bool { return c.ForceSync }, false, false},
		{"forceSync", "NO", func(c *Config) bool { return c.ForceSync }, true, true},
		{"forceSync", "false", func(c *Config) bool { return c.ForceSync }, true, true},
		{"forceSync", "", func(c *Config) bool { return c.ForceSync }, true, true},
		{"leaderServes", "No", func(c *Config) bool { return c.LeaderServes }, true, true},
		{"leaderServes", "no", func(c *Config) bool { return c.LeaderServes }, false, false},
		{"kerberos.removeHostFromPrincipal", "TRUE", func(c *Config) bool { return c.Kerberos.RemoveHost }, false, true},
		{"kerberos.removeHostFromPrincipal", "true", func(c *Config) bool { return c.Kerberos.RemoveHost }, true, false},
		{"kerberos.removeRealmFromPrincipal", "True", func(c *Config) bool { return c.Kerberos.RemoveRealm }, false, true},
		{"enforceQuota", "TRUE", func(c *Config) bool { return c.EnforceQuota }, true, false}, // Boolean.parseBoolean ignores case
	} {
		inv := good(t, fmt.Sprintf("dataDir=d\n%s=%s", c.key, c.value), nil)
		warned := len(inv.Warnings) == 1 && strings.Contains(inv.Warnings[0], c.key+": is ")
		if c.got(&inv.Config) != c.want || warned != c.warn || len(inv.Warnings) > 1 {
			t.Errorf("%s=%s became %v, want %v; warnings %q", c.key, c.value, !c.want, c.want, inv.Warnings)
		}
	}
}

// ZooKeeper starts with these numbers.
func TestLoad_LowNumbers(t *testing.T) {
	for _, c := range []struct {
		line string
		got  func(*Config) int
		want int
		warn bool
	}{
		{"snapCount=1", func(c *Config) int { return c.SnapCount }, 2, true},
		{"snapCount=2", func(c *Config) int { return c.SnapCount }, 2, false},
		{"snapCount=0x10", func(c *Config) int { return c.SnapCount }, 16, false},
		{"globalOutstandingLimit=-1", func(c *Config) int { return c.GlobalOutstandingLimit }, 1000, true},
		{"globalOutstandingLimit=1", func(c *Config) int { return c.GlobalOutstandingLimit }, 1, false},
		{"largeRequestMaxBytes=-1", func(c *Config) int { return c.Throttle.LargeBytes }, 100 << 20, true},
		{"initLimit=0", func(c *Config) int { return c.InitLimit }, 0, false},
		{"syncLimit=0", func(c *Config) int { return c.SyncLimit }, 0, false},
		{"admin.serverPort=-1", func(c *Config) int { return c.AdminPort }, -1, false},
	} {
		inv := good(t, "dataDir=d\n"+c.line, nil)
		if got := c.got(&inv.Config); got != c.want || (len(inv.Warnings) == 1) != c.warn || len(inv.Warnings) > 1 {
			t.Errorf("%s became %d, want %d; warnings %q", c.line, got, c.want, inv.Warnings)
		}
		if off := c.line == "admin.serverPort=-1"; inv.Config.AdminEnabled == off {
			t.Errorf("%s: the admin server is enabled: %v", c.line, inv.Config.AdminEnabled)
		}
	}
	// ZooKeeper refuses these in an ensemble.
	wantLines(t, problems(t, "dataDir=d\nmyid=1\nserver.1=a:1:2;3\nserver.2=b:1:2;3\nserver.3=c:1:2;3\ninitLimit=0\nsyncLimit=0", nil),
		"zoo.cfg:6: initLimit: is 0; allowed in an ensemble: 1 or more ticks", "zoo.cfg:7: syncLimit: is 0; allowed in an ensemble: 1 or more ticks")
}
