package config

import (
	"os"
	"strings"
	"testing"
)

// keysThatDiffer names the entry of docs/reference/differences.md for settings that start gozkd and
// not ZooKeeper, or the other way round, alone or in an ensemble.
var keysThatDiffer = map[string]string{
	"DigestAuthenticationProvider.digestAlg=MD5": "digest-values",
	"admin.commandURL=commands":                  "admin-url",
	"autopurge.purgeInterval=":                   "java-keys",
	"autopurge.purgeInterval=12h":                "java-keys",
	"autopurge.purgeInterval=1d":                 "java-keys",
	"autopurge.purgeInterval=1x":                 "java-keys",
	"autopurge.purgeInterval=30m":                "java-keys",
	"connectionTokenFillTime=0":                  "low-numbers",
	"group.1=1":                                  "quorums",
	"java.security.auth.login.config=/jaas.conf": "sasl-section",
	"jvm.pause.monitor=yes":                      "java-keys",
	"quorum.auth.learnerRequireSasl=true":        "quorums",
	"quorum.auth.serverRequireSasl=true":         "quorums",
	"requestThrottleStallTime=0":                 "low-numbers",
	"secureClientPort=0":                         "low-numbers",
	"serverCnxnFactory=org.example.Factory":      "java-keys",
	"watchManagerName=org.example.Manager":       "java-keys",
	"znode.container.checkIntervalMs=0":          "low-numbers",
}

// Every key of ZooKeeper 3.4 to 3.10 and of its Java client, with its usual values and with values
// that templates leave behind, starts gozkd if it starts ZooKeeper, and only then: alone, and in an
// ensemble. `make compat-config` compares the recorded answers of ZooKeeper with a running one.
func TestLoad_KeysOfZooKeeper(t *testing.T) {
	answers, err := os.ReadFile("testdata/zookeeper/keys.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../../docs/reference/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	const alone = "dataDir=d\nclientPort=2181\ntickTime=2000\ninitLimit=10\nsyncLimit=5\n"
	const members = "server.1=127.0.0.1:2888:3888\nserver.2=127.0.0.2:2888:3888\nserver.3=127.0.0.3:2888:3888\nmyid=1\n"
	for line := range strings.Lines(string(answers)) {
		fields := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		setting := fields[2]
		differs, reason := false, keysThatDiffer[setting]
		for i, servers := range []string{"", members} {
			_, err := in(t, alone+servers+setting+"\n", nil)
			if (err == nil) == (fields[i] == "starts") {
				continue
			}
			differs = true
			if reason == "" {
				t.Errorf("%s: ZooKeeper %s with %q, gozkd: %v", setting, fields[i], servers, err)
			}
		}
		if reason != "" && !strings.Contains(string(page), "\n### "+reason+"\n") {
			t.Errorf("%s: docs/reference/differences.md has no %s", setting, reason)
		}
		if !differs && reason != "" {
			t.Errorf("%s no longer differs", setting)
		}
	}
}
