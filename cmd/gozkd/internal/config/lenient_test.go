package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// ZooKeeper compares these values with a single word, most in that case. Any other text, such as
// the word in capitals, must neither skip ACLs nor disable syncs.
func TestLoad_ExactWords(t *testing.T) {
	for _, c := range []struct {
		key, value string
		got        func(*Config) bool
		want, warn bool
	}{
		{"skipACL", "yes", func(c *Config) bool { return c.Server.SkipACL }, true, false},
		{"skipACL", "no", func(c *Config) bool { return c.Server.SkipACL }, false, false},
		{"skipACL", "YES", func(c *Config) bool { return c.Server.SkipACL }, false, true},
		{"skipACL", "true", func(c *Config) bool { return c.Server.SkipACL }, false, true},
		{"forceSync", "no", func(c *Config) bool { return c.Server.NoSync }, true, false},
		{"forceSync", "NO", func(c *Config) bool { return c.Server.NoSync }, false, true},
		{"forceSync", "false", func(c *Config) bool { return c.Server.NoSync }, false, true},
		{"forceSync", "", func(c *Config) bool { return c.Server.NoSync }, false, true},
		{"leaderServes", "No", func(c *Config) bool { return c.Server.LeaderWithoutClients }, false, true},
		{"leaderServes", "no", func(c *Config) bool { return c.Server.LeaderWithoutClients }, true, false},
		{"kerberos.removeHostFromPrincipal", "TRUE", func(c *Config) bool { return c.Kerberos.RemoveHost }, false, true},
		{"kerberos.removeHostFromPrincipal", "true", func(c *Config) bool { return c.Kerberos.RemoveHost }, true, false},
		{"kerberos.removeRealmFromPrincipal", "True", func(c *Config) bool { return c.Kerberos.RemoveRealm }, false, true},
		{"enforceQuota", "TRUE", func(c *Config) bool { return c.Server.EnforceQuota }, true, false}, // Boolean.parseBoolean ignores case
		{"enforceQuota", "yes", func(c *Config) bool { return c.Server.EnforceQuota }, false, true},
		{"extendedTypesEnabled", "1", func(c *Config) bool { return !c.Server.RefuseTTL }, false, true},
		{"sessionRequireClientSASLAuth", "", func(c *Config) bool { return c.Auth.RequireSASL }, false, true},
		{"admin.enableServer", "no", func(c *Config) bool { return c.AdminEnabled }, true, true},
		{"admin.enableServer", "False", func(c *Config) bool { return c.AdminEnabled }, false, false},
	} {
		inv := good(t, fmt.Sprintf("dataDir=d\n%s=%s", c.key, c.value), nil)
		warned := len(inv.Warnings) == 1 && strings.Contains(inv.Warnings[0], c.key+": is ")
		if c.got(&inv.Config) != c.want || warned != c.warn || len(inv.Warnings) > 1 {
			t.Errorf("%s=%s became %v, want %v; warnings %q", c.key, c.value, !c.want, c.want, inv.Warnings)
		}
	}
}

// ZooKeeper 3.9.5 starts with this file, as if these lines were not there.
func TestLoad_NoNumbers(t *testing.T) {
	const text = "jute.maxbuffer=4MB\nsnapCount=many\npreAllocSize=\nglobalOutstandingLimit=x\nfsync.warningthresholdms=no\n" +
		"znode.container.checkIntervalMs=\nznode.container.maxPerMinute=1.5\nnio.sessionlessCnxnTimeout=\n" +
		"DigestAuthenticationProvider.superDigest=\nX509AuthenticationProvider.superUser=\nssl.keyStore.type=\nssl.clientAuth=\n" +
		"admin.idleTimeout=x\nadmin.serverPort=\nsnapSizeLimitInKb=1 2\n"
	inv, plain := good(t, "dataDir=d\n"+text, nil), good(t, "dataDir=d\n", nil)
	if got, want := inv.Config.String(), plain.Config.String(); got != want {
		t.Errorf("%s\ninstead of\n%s", got, want)
	}
	for line := range strings.Lines(text) {
		key, _, _ := strings.Cut(line, "=")
		if !slices.ContainsFunc(inv.Warnings, func(w string) bool { return strings.Contains(w, key+": is ") }) {
			t.Errorf("no warning of %s: %q", key, inv.Warnings)
		}
	}
	wantLines(t, problems(t, "dataDir=d\ngozkd.watchMemoryKB=x\nsyncLimit=\nadmin.serverPort=70000", nil),
		`zoo.cfg:2: gozkd.watchMemoryKB: is "x"; allowed: a whole number from 0 to 2147483647, decimal, 0x hexadecimal or 0 octal`,
		`zoo.cfg:3: syncLimit: is ""; allowed: a whole number from 0 to 2147483647`,
		`zoo.cfg:4: admin.serverPort: is "70000"; allowed: a whole number from -1 to 65535, decimal, 0x hexadecimal or 0 octal`)
}

// ZooKeeper starts with these numbers.
func TestLoad_LowNumbers(t *testing.T) {
	for _, c := range []struct {
		line string
		got  func(*Config) int
		want int
		warn bool
	}{
		{"snapCount=1", func(c *Config) int { return c.Server.SnapCount }, 2, true},
		{"snapCount=2", func(c *Config) int { return c.Server.SnapCount }, 2, false},
		{"snapCount=0x10", func(c *Config) int { return c.Server.SnapCount }, 16, false},
		{"globalOutstandingLimit=-1", func(c *Config) int { return c.Server.OutstandingLimit }, 1000, true},
		{"globalOutstandingLimit=1", func(c *Config) int { return c.Server.OutstandingLimit }, 1, false},
		{"largeRequestMaxBytes=-1", func(c *Config) int { return c.Server.LargeRequestMaxBytes }, 100 << 20, true},
		{"preAllocSize=0", func(c *Config) int { return int(c.Server.SegmentBytes) }, 4 << 10, true},
		{"preAllocSize=0x7fffffff", func(c *Config) int { return int(c.Server.SegmentBytes) }, 4 << 30, true},
		{"fsync.warningthresholdms=0", func(c *Config) int { return int(c.Server.SyncWarning) }, 1e6, true},
		{"znode.container.maxNeverUsedIntervalMs=-1", func(c *Config) int { return int(c.Server.ContainerNeverUsed) }, -1e6, true},
		{"admin.rateLimiterIntervalInMS=-1", func(c *Config) int { return int(c.AdminInterval) }, -1e6, true},
		{"admin.idleTimeout=0", func(c *Config) int { return int(c.AdminIdleTimeout) }, 30e9, true},
		{"admin.idleTimeout=1", func(c *Config) int { return int(c.AdminIdleTimeout) }, 1e6, false},
		{"requestThrottleLimit=-1", func(c *Config) int { return c.Server.RequestThrottle.Limit }, 0, true},
		{"throttledOpWaitTime=-1", func(c *Config) int { return int(c.Server.RequestThrottle.OpWaitTime) }, 0, true},
		{"largeRequestThreshold=-2", func(c *Config) int { return c.Server.LargeRequestThreshold }, -1, true},
		{"connectionFreezeTime=-2", func(c *Config) int { return int(c.Server.ConnectionThrottle.FreezeTime) }, 0, true},
		{"connectionFreezeTime=0", func(c *Config) int { return int(c.Server.ConnectionThrottle.FreezeTime) }, 1, false},
		{"connectionFreezeTime=7", func(c *Config) int { return int(c.Server.ConnectionThrottle.FreezeTime) }, 7e6, false},
		{"connectionMaxTokens=-1", func(c *Config) int { return c.Server.ConnectionThrottle.Tokens }, 0, true},
		{"initLimit=0", func(c *Config) int { return c.Server.InitLimit }, 0, false},
		{"syncLimit=0", func(c *Config) int { return c.Server.SyncLimit }, 0, false},
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
