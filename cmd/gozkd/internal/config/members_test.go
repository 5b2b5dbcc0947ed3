package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/serverlist"
)

func TestLoad_SoleMember(t *testing.T) {
	for _, c := range []struct{ lines, listens string }{
		{"server.1=localhost:2888:3888", ":2181"},
		{"server.0=localhost:2888:3888;2182", ":2182"},
		{"server.1=localhost:2888:3888:participant;0.0.0.0:2182", ":2182"},
		{"server.1=[::1]:2888:3888;[::1]:2182", "[::1]:2182"},
		{"server.1=a:1:2;127.0.0.1:2182", "127.0.0.1:2182"},
		{"server.1=a:1:2;2182\nclientPort=2182\ngroup.1=1\nweight.1=1\nsslQuorum=true", ":2182"},
		{"server.1=a:1:2;2182\nclientPortAddress=h", "h:2182"},
		{"server.1=a:1:2;[::1]:2182\nclientPortAddress=0:0:0:0:0:0:0:1", "[::1]:2182"},
	} {
		inv := good(t, "dataDir=d\n"+c.lines, nil)
		if got := inv.Config.ListenAddress(); got != c.listens || len(inv.Warnings) != 1 || !strings.Contains(inv.Warnings[0], "zoo.cfg:2: server.") ||
			len(inv.Config.Members) > 0 || inv.Config.PeerListenAddress() != "" {
			t.Errorf("%s: listens on %s, members %v, warnings %q; want %s", c.lines, got, inv.Config.Members, inv.Warnings, c.listens)
		}
	}
	if inv := good(t, "dataDir=d\nserver.1=a:1:2;h:2182", nil, "--client-port", "7", "--client-address", "::1"); inv.Config.ListenAddress() != "[::1]:7" {
		t.Errorf("flags must win over a server line: %s", inv.Config.ListenAddress())
	}
	inv := good(t, "dataDir=d\nserver.1=a:1:2\npeerType=observer", nil)
	wantLines(t, inv.Warnings, "zoo.cfg:2: server.1: is the only server line, so this server is standalone: "+
		"of the line only a client port has an effect; add the other servers, or set standaloneEnabled=false for an ensemble of one",
		"zoo.cfg:3: peerType: observer has no effect: the role is that of the server line, participant")
	const allowed = "; allowed: server.N=" + serverlist.LineFormat
	for _, c := range []struct{ lines, want string }{
		{"server.one=a:1:2", `zoo.cfg:2: server.one: is not server.N with a number N`},
		{"server.1=a", `zoo.cfg:2: server.1: is "a": there is no peer port` + allowed},
		{"server.1=a:1:70000", `zoo.cfg:2: server.1: is "a:1:70000": the election port "70000" is not between 0 and 65535` + allowed},
		{"server.1=a:1:2:boss", `zoo.cfg:2: server.1: is "a:1:2:boss": the role "boss" is neither participant nor observer` + allowed},
		{"server.1=a:1:2:observer", `zoo.cfg:2: server.1: is an observer, and there is no other server: make it a participant, or add the others`},
		{"server.1=a:1:2;1;2;3", `zoo.cfg:2: server.1: is "a:1:2;1;2;3": the secure client port "2;3" is not between 1 and 65535` + allowed},
		{"server.1=a:1:2;1;2", "zoo.cfg:2: server.1: is a:1:2;1;2, and ssl.keyStore.location is not set: name a file with this server's key and certificate (JKS, PKCS12 or PEM)"},
		{"server.1=a:1:2;2182\nclientPort=2181", "zoo.cfg:2: server.1: has client port 2182, but clientPort is 2181 at zoo.cfg:3"},
		{"server.1=a:1:2;b:2182\nclientPortAddress=c", "zoo.cfg:2: server.1: has client address b, but clientPortAddress is c at zoo.cfg:3"},
		{"standaloneEnabled=false", "zoo.cfg:2: standaloneEnabled: is false, but there is no server line: name the servers, or remove this key"},
	} {
		wantLines(t, problems(t, "dataDir=d\n"+c.lines, nil), c.want)
	}
}

// The port for TLS in a server's own line, as in ZooKeeper 3.10, is that of secureClientPort. The
// lines that servers tell each other and clients have none.
func TestLoad_SecurePortInLine(t *testing.T) {
	const keys = "dataDir=d\nssl.keyStore.location=/k.pem\nssl.trustStore.location=/t.pem\n"
	for _, c := range []struct {
		lines, secure string
		only          bool
	}{
		{"server.1=a:1:2;2181;2281", ":2281", false},
		{"server.1=a:1:2;;h:2281", "h:2281", true},
		{"server.1=a:1:2;;2281\nsecureClientPort=2281\nsecureClientPortAddress=h", "h:2281", true},
		{"myid=2\nserver.1=a:1:2;2181;2281\nserver.2=b:1:2;2181;2282\nserver.3=c:1:2;;2283", ":2282", false},
	} {
		inv := good(t, keys+c.lines, nil)
		if got := inv.Config; got.SecureListenAddress() != c.secure || got.SecureOnly != c.only || strings.Contains(fmt.Sprint(got.Members), "228") {
			t.Errorf("%s: TLS on %s, only %v, members %v; want %s, %v", c.lines, got.SecureListenAddress(), got.SecureOnly, got.Members, c.secure, c.only)
		}
	}
	if got := good(t, keys+"server.1=a:1:2;;2281", nil, "-o", "secureClientPort=2282").Config.SecureListenAddress(); got != ":2282" {
		t.Errorf("a flag must win over a server line: %s", got)
	}
	wantLines(t, problems(t, keys+"server.1=a:1:2;2181;2281\nsecureClientPort=5", nil), "zoo.cfg:4: server.1: has secure client port 2281, but secureClientPort is 5 at zoo.cfg:5")
	wantLines(t, problems(t, keys+"server.1=a:1:2;;b:2281\nsecureClientPort=2281\nsecureClientPortAddress=c", nil),
		"zoo.cfg:4: server.1: has secure client address b, but secureClientPortAddress is c at zoo.cfg:6")
}

// lines are three servers, starting at line 1 of a file.
const lines = "server.1=a:2888:3888;2181\nserver.2=b:2888:3888;b:2182\nserver.3=c:2888:3888:observer;2183\n"

const printed = "[server.1=a:2888:3888:participant;0.0.0.0:2181 server.2=b:2888:3888:participant;b:2182 server.3=c:2888:3888:observer;0.0.0.0:2183]"

// In a server's own line, 0.0.0.0 means to listen on all addresses.
func TestLoad_OwnLineOnAllAddresses(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	for _, any := range []string{"0.0.0.0", "[::]"} {
		c := good(t, "dataDir=d\nmyid=2\nserver.1=a:2888:3888\nserver.2="+any+":2889:3888;2181\nserver.3=c:2888:3888\n", nil).Config
		own, _ := c.Members.Get(2)
		if c.PeerListenAddress() != ":2889" || own.Host != name || c.ListenAddress() != ":2181" {
			t.Errorf("%s: listens on %s and %s, announces %v", any, c.PeerListenAddress(), c.ListenAddress(), c.Members)
		}
	}
}

func TestLoad_Ensemble(t *testing.T) {
	inv := good(t, lines+"dataDir=d\nmyid=2\ninitLimit=7\nsyncLimit=3\nlinearizableReads=true\nreconfigEnabled=true\npeerType=participant\nelectionAlg=3\n", nil)
	c := inv.Config
	if fmt.Sprint(c.Members) != printed || c.MyID != 2 || c.Server.InitLimit != 7 || c.Server.SyncLimit != 3 || !c.Server.LinearizableReads || !c.Server.ReconfigEnabled {
		t.Errorf("%+v", c)
	}
	if c.ListenAddress() != "b:2182" || c.PeerListenAddress() != "b:2888" {
		t.Errorf("listens on %s and %s", c.ListenAddress(), c.PeerListenAddress())
	}
	wantLines(t, inv.Warnings, "zoo.cfg:1: server.1: is one of 2 participants, which tolerate no more failures than 1 would (0): use an odd number")
	for _, want := range []string{"server.1=a:2888:3888:participant;0.0.0.0:2181\n", "myid=2\n", "initLimit=7\n", "syncLimit=3\n", "linearizableReads=true\n"} {
		if !strings.Contains(c.String(), want) {
			t.Errorf("%s is not in\n%s", want, c)
		}
	}

	c = good(t, lines+"dataDir=d\nquorumListenOnAllIPs=true", nil, "--id", "3").Config
	if c.MyID != 3 || c.PeerListenAddress() != ":2888" || c.ListenAddress() != ":2183" || c.Server.InitLimit != 10 || c.Server.SyncLimit != 5 {
		t.Errorf("%+v", c)
	}
	inv = good(t, lines+"dataDir=d\npeerType=participant", nil, "--id", "3")
	if len(inv.Warnings) != 2 || !strings.HasSuffix(inv.Warnings[1], "the role is that of the server line, observer") {
		t.Errorf("%q", inv.Warnings)
	}
	c = good(t, "server.1=a:1\nserver.2=b:1\nserver.3=[::1]:1\ndataDir=d\nclientPort=5", nil, "--id", "3", "--memory").Config
	if c.ListenAddress() != ":5" || c.PeerListenAddress() != "[::1]:1" || c.Members[2].ClientPort != 0 {
		t.Errorf("without client ports in the lines: %+v", c)
	}
	c = good(t, "server.5=a:1:2;3\nstandaloneEnabled=false\ndataDir=d\nmyid=5", nil).Config
	if len(c.Members) != 1 || c.MyID != 5 {
		t.Errorf("an ensemble of one: %+v", c)
	}
}

// TestLoad_EnsembleFlags: the members announce the client address that flags set.
func TestLoad_EnsembleFlags(t *testing.T) {
	for _, c := range []struct{ flags, own, listens string }{
		{"", "server.2=b:2888:3888:participant;b:2182", "b:2182"},
		{"--client-port 7", "server.2=b:2888:3888:participant;0.0.0.0:7", ":7"},
		{"--client-port 7 --client-address h", "server.2=b:2888:3888:participant;h:7", "h:7"},
		{"--client-address h", "server.2=b:2888:3888:participant;h:2182", "h:2182"},
		{"--client-port 0", "server.2=b:2888:3888:participant", ":0"},
	} {
		inv := good(t, lines+"dataDir=d\n", nil, append(strings.Fields(c.flags), "--id", "2")...)
		if fixed := c.flags != ""; inv.Config.Server.ListenFixed != fixed {
			t.Errorf("%s: ListenFixed is %v", c.flags, !fixed)
		}
		if got := inv.Config.Members[1].String(); got != c.own || inv.Config.ListenAddress() != c.listens {
			t.Errorf("%s: %s, listens on %s; want %s, %s", c.flags, got, inv.Config.ListenAddress(), c.own, c.listens)
		}
	}
}

func TestLoad_EnsembleProblems(t *testing.T) {
	const allowed = "; allowed: server.N=" + serverlist.LineFormat
	for _, c := range []struct {
		text string
		want []string
	}{
		{lines, []string{"zoo.cfg:1: server.1: names a server of an ensemble, and the number of this server is not configured: write it into " +
			filepath.Join("d", "myid") + ", or set myid in zoo.cfg, --id or ZOO_MY_ID"}},
		{lines + "myid=4", []string{"zoo.cfg:4: myid: is 4, but the servers are server.1, server.2, server.3: add this one at zoo.cfg:1, or correct the number"}},
		{lines + "myid=255", []string{`zoo.cfg:4: myid: is "255"; allowed: a whole number from 0 to 254`}},
		{"server.1=a:1:2\nserver.1=b:1:2\nserver.2=c:1:2\nmyid=1", []string{"zoo.cfg:2: server.1: is already set at zoo.cfg:1: each server needs a different number"}},
		{"server.1=a:1:2\nserver.01=b:1:2\nmyid=1", []string{"zoo.cfg:2: server.01: is a second server 1, after zoo.cfg:1: each server needs a different number"}},
		{"server.1=a:1:2\nserver.2=A:1:3\nmyid=1", []string{"zoo.cfg:2: server.2: has the same address, A:1, as server.1 at zoo.cfg:1: each server needs a different address"}},
		{"server.1=127.0.0.1:1:2\nserver.2=127.0.0.1:1:3\nmyid=1", []string{"zoo.cfg:2: server.2: has the same address, 127.0.0.1:1, as server.1 at zoo.cfg:1: each server needs a different address"}},
		{"server.255=a:1:2\nserver.2=b\nserver.x=c:1:2\nmyid=1", []string{
			`zoo.cfg:1: server.255: is "a:1:2": the id 255 is not between 0 and 254` + allowed,
			`zoo.cfg:2: server.2: is "b": there is no peer port` + allowed,
			`zoo.cfg:3: server.x: is "c:1:2": the id "x" is not a number` + allowed}},
		{"server.1=a:1:2|b:1:2\nserver.2=c:1:2\nmyid=1", []string{"zoo.cfg:1: server.1: has several addresses, which need multiAddress.enabled=true on all servers"}},
		{"server.1=a:1:2|b:1:2\nserver.2=c:1:2|b:1:9\nmyid=1\nmultiAddress.enabled=true", []string{
			"zoo.cfg:2: server.2: has the same address, b:1, as server.1 at zoo.cfg:1: each server needs a different address"}},
		{"server.1=0.0.0.0:1:2|b:1:2\nserver.2=c:1:2\nmyid=1\nmultiAddress.enabled=true", []string{
			"zoo.cfg:1: server.1: has the address 0.0.0.0, where this server cannot reach it: only a server's own line may have it"}},
		{"server.1=0.0.0.0:1:2\nserver.2=c:1:2", []string{"zoo.cfg:1: server.1: names a server of an ensemble, and the number of this server is not configured: write it into " +
			filepath.Join("d", "myid") + ", or set myid in zoo.cfg, --id or ZOO_MY_ID"}},
		{"server.1=0.0.0.0:1:2\nserver.2=c:1:2\nmyid=2", []string{"zoo.cfg:1: server.1: has the address 0.0.0.0, where this server cannot reach it: only a server's own line may have it"}},
		{lines + "myid=1\ngroup.1=1:2:3\nweight.1=1\nsslQuorum=true\nquorum.auth.enableSasl=true", []string{
			"zoo.cfg:5: group.1: belongs to hierarchical quorums, which are not supported: each participant has one vote, and a majority decides; remove the keys group.* and weight.* from all servers if that suits you",
			"zoo.cfg:6: weight.1: belongs to hierarchical quorums, which are not supported: each participant has one vote, and a majority decides; remove the keys group.* and weight.* from all servers if that suits you",
			"zoo.cfg:8: quorum.auth.enableSasl: is true, which is not supported: servers prove who they are by a secret (gozkd.peer.secretFile) or by TLS (sslQuorum)"}},
		{lines + "myid=1\ngozkd.scale.url=http://a", []string{"zoo.cfg:5: gozkd.scale.url: is set, which needs reconfigEnabled=true on all servers"}},
		{lines + "myid=1\nclientPort=5", []string{"zoo.cfg:1: server.1: has client port 2181, but clientPort is 5 at zoo.cfg:5"}},
		{lines + "myid=1\ninitLimit=-1\nsyncLimit=x", []string{
			`zoo.cfg:5: initLimit: is "-1"; allowed: a whole number from 0 to 2147483647`,
			`zoo.cfg:6: syncLimit: is "x"; allowed: a whole number from 0 to 2147483647`}},
		{lines + "myid=1\ninitLimit=2147483647", []string{"zoo.cfg:5: initLimit: is 2147483647: 2147483647 ticks of 3000 ms for initLimit exceed 2147483647 ms"}},
		{lines + "myid=1\ntickTime=99999999\nsyncLimit=1\ninitLimit=22", []string{"zoo.cfg:7: initLimit: is 22: 22 ticks of 99999999 ms for initLimit exceed 2147483647 ms"}},
		{"server.1=\nmyid=1", []string{`zoo.cfg:1: server.1: is "": the host is neither a name, an IPv4 address, nor an IPv6 address in [ ]; allowed: server.N=` + serverlist.LineFormat}},
		{"server.1=a:1:2\nserver.2=b:1:2:observer\nmyid=1", []string{"zoo.cfg:1: server.1: is one of 2 servers, but only server.1 is a participant: add more, or set standaloneEnabled=false"}},
		{"server.1=a:1:2:observer\nserver.2=b:1:2:observer\nmyid=1", []string{"zoo.cfg:1: server.1: is an observer, and no server is a participant: an ensemble needs votes, so make some of them participants"}},
	} {
		wantLines(t, problems(t, c.text+"\ndataDir=d\n", nil), c.want...)
	}
	inv := good(t, "server.4=d:1:2\n"+lines+"myid=1\ndataDir=d\n", map[string]string{"JVMFLAGS": "-Dquorum.auth.enableSasl=true"})
	wantLines(t, inv.Warnings, "JVMFLAGS: quorum.auth.enableSasl: true has no effect, as in ZooKeeper, which reads it in zoo.cfg only")
	wantLines(t, problems(t, lines, nil, "--memory"), "zoo.cfg:1: server.1: names a server of an ensemble, and the number of this server is not configured: write it into myid in zoo.cfg, --id or ZOO_MY_ID")
}

func TestLoad_Myid(t *testing.T) {
	file := filepath.Join("d", "myid")
	for _, c := range []struct {
		text, myid string
		want       uint64
		problem    string
	}{
		{lines, "3\n", 3, ""},
		{lines, " 2 \r\nmore\n", 2, ""},
		{"server.0=z:1:2\n" + lines, "0\n", 255, ""},
		{"server.0=z:1:2\n" + lines + "myid=0\n", "0\n", 255, ""},
		{"server.0=z:1:2\n" + lines + "myid=0\n", "1\n", 0, "zoo.cfg:5: myid: is 0, but " + file + " contains 1: the data belongs to server 1; correct one of them"},
		{lines, "0\n", 0, file + ":1: is 0, but the servers are server.1, server.2, server.3: add this one at zoo.cfg:1, or correct the number"},
		{lines + "myid=2\n", "2", 2, ""},
		{lines + "myid=2\n", "3", 0, "zoo.cfg:4: myid: is 2, but " + file + " contains 3: the data belongs to server 3; correct one of them"},
		{lines, "300", 0, file + ":1: is 300; allowed in an ensemble: the number of a server line, 0 to 254"},
		{lines, "4", 0, file + ":1: is 4, but the servers are server.1, server.2, server.3: add this one at zoo.cfg:1, or correct the number"},
		{lines, "", 0, file + `:1: is ""; allowed: the number of this server`},
		{"", "one\n", 0, file + `:1: is "one"; allowed: the number of this server`},
		{"", "300\n", 0, ""},
		{"", "7\n", 7, ""},
		{"server.1=a:1:2\n", "7\n", 7, ""},
	} {
		t.Chdir(t.TempDir())
		write(t, "zoo.cfg", c.text+"dataDir=d\n")
		write(t, file, c.myid)
		inv, err := load([]string{"zoo.cfg"}, func(string) string { return "" }, nil)
		if got := fmt.Sprint(err); c.problem != "" && got != c.problem || c.problem == "" && err != nil {
			t.Errorf("%q in %q: %s, want %s", c.myid, c.text, got, c.problem)
		}
		if err == nil && inv.Config.MyID != c.want {
			t.Errorf("%q in %q: it is server %d, want %d", c.myid, c.text, inv.Config.MyID, c.want)
		}
		if err == nil && c.want == 255 && !strings.Contains(inv.Config.String(), "\nmyid=0\n") {
			t.Errorf("%s", inv.Config)
		}
	}
	t.Chdir(t.TempDir())
	write(t, filepath.Join(file, "x"), "")
	_, err := load([]string{"--data-dir", "d"}, func(string) string { return "" }, nil)
	wantLines(t, strings.Split(fmt.Sprint(err), "\n"), file+": cannot be read: is a directory")
}

func TestLoad_DockerEnvironment(t *testing.T) {
	servers := strings.ReplaceAll(lines, "\n", " \t")
	env := map[string]string{"ZOO_MY_ID": "1", "ZOO_SERVERS": servers}
	inv := good(t, "", env)
	if c := inv.Config; fmt.Sprint(c.Members) != printed || c.MyID != 1 || c.ListenAddress() != ":2181" || c.Server.Dir != DefaultDataDir {
		t.Errorf("%+v", c)
	}
	if c := good(t, "", env, "--id", "2").Config; c.MyID != 2 {
		t.Errorf("the flag must win: %+v", c)
	}
	if c := good(t, "", map[string]string{"ZOO_SERVERS": "server.1=localhost:2888:3888;2182"}).Config; len(c.Members) > 0 || c.ListenAddress() != ":2182" {
		t.Errorf("one server: %+v", c)
	}
	inv = good(t, "dataDir=d\nserver.1=x:1\nserver.2=y:1\n", env)
	wantLines(t, inv.Warnings,
		"ZOO_SERVERS: no effect, as in ZooKeeper's images, because zoo.cfg exists",
		"zoo.cfg:2: server.1: is one of 2 participants, which tolerate no more failures than 1 would (0): use an odd number")
	if got := fmt.Sprint(inv.Config.Members); got != "[server.1=x:1:0:participant server.2=y:1:0:participant]" {
		t.Errorf("zoo.cfg must win: %s", got)
	}
	wantLines(t, problems(t, "", map[string]string{"ZOO_MY_ID": "one", "ZOO_SERVERS": "zoo1:2888:3888::1 server.2=b:1 server.2=c:1"}),
		`ZOO_SERVERS: contains "zoo1:2888:3888::1"; allowed: server.N=`+serverlist.LineFormat+", separated by spaces",
		"ZOO_SERVERS: server.2: is already set at ZOO_SERVERS: each server needs a different number",
		`ZOO_MY_ID: myid: is "one"; allowed: a whole number from 0 to 254`)
	wantLines(t, problems(t, "", map[string]string{"ZOO_SERVERS": "server.1=a:1:2;2181,server.2=b:1:2;2181"}),
		"ZOO_SERVERS: has commas between server lines; separate them by white space")
}

func TestLoad_DynamicFile(t *testing.T) {
	t.Chdir(t.TempDir())
	load := func() (loaded, error) {
		return load([]string{"zoo.cfg"}, func(string) string { return "" }, nil)
	}
	write(t, "zoo.cfg", "dataDir=data\ndynamicConfigFile=dyn")
	write(t, "dyn", "server.1=a:1:2;2199\nversion=100000000")
	write(t, "data/myid", "1\n")
	inv, err := load()
	if err != nil || inv.Config.ClientPort != 2199 || len(inv.Config.Members) > 0 {
		t.Errorf("%+v %v", inv, err)
	}
	write(t, "dyn", lines)
	if inv, err = load(); err != nil || fmt.Sprint(inv.Config.Members) != printed || inv.Config.ClientPort != 2181 {
		t.Errorf("%+v %v", inv, err)
	}
	write(t, "dyn", "tickTime=1\nserver.1=a:1:2")
	_, err = load()
	wantLines(t, strings.Split(fmt.Sprint(err), "\n"),
		"dyn:1: tickTime: does not belong in a dynamic configuration file; allowed: server.N, group.N, weight.N, version")
	write(t, "zoo.cfg", "dataDir=data\nserver.1=a:1:2\ndynamicConfigFile=dyn")
	_, err = load()
	wantLines(t, strings.Split(fmt.Sprint(err), "\n"),
		"zoo.cfg:2: server.1: must be in the dynamic configuration file, which is set at zoo.cfg:3")
}
