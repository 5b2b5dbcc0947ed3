package config

import (
	"strings"
	"testing"
	"time"
)

func TestEnsemble_Defaults(t *testing.T) {
	for _, args := range [][]string{{"--ensemble", "3"}, {"--ensemble=1"}} {
		c := good(t, "", nil, append(args, "--memory")...).Config
		if c.Server.Tick != 500*time.Millisecond || c.Server.MaxSessionTimeout != time.Hour || c.Server.MaxClientConns != -1 || c.ListenAddress() != "127.0.0.1:2181" || c.Words()[0] != "*" {
			t.Errorf("%q: %+v", args, c)
		}
		c = good(t, "tickTime=1000\nmaxSessionTimeout=4000\nmaxClientCnxns=7\nclientPortAddress=::1\n", map[string]string{"JVMFLAGS": "-Dzookeeper.4lw.commands.whitelist=ruok"}, append(args, "--memory")...).Config
		if c.Server.Tick != time.Second || c.Server.MaxSessionTimeout != 4*time.Second || c.Server.MaxClientConns != 7 || c.ListenAddress() != "[::1]:2181" || c.Words()[0] != "ruok" {
			t.Errorf("%q: what was set has no effect: %+v", args, c)
		}
	}
	inv := good(t, "", nil, "--memory", "--ensemble", "3", "--client-port", "0")
	if inv.Ensemble != 3 || inv.Config.AdminEnabled || inv.Config.AdminOmitted != "client port 0" {
		t.Errorf("%+v", inv)
	}
	for args, admin := range map[string]bool{
		"--client-port 0 -o admin.serverPort=0": true, "--port-file f": false, "-o admin.enableServer=false": false,
		"": true, "-o admin.serverPort=8090 -o admin.portUnification=true -o ssl.quorum.keyStore.location=k.pem": false,
	} {
		inv := good(t, "", nil, append([]string{"--memory", "--ensemble", "3"}, strings.Fields(args)...)...)
		if warned := strings.Contains(strings.Join(inv.Warnings, "\n"), "no admin server with TLS"); inv.Config.AdminEnabled != admin || warned != strings.Contains(args, "Unification") {
			t.Errorf("%s: an admin server: %v; warnings %q", args, inv.Config.AdminEnabled, inv.Warnings)
		}
	}
	for args, omitted := range map[string]string{
		"--memory": "--memory", "--port-file f": "--port-file", "--client-port 0": "client port 0", "": "",
		"--memory -o admin.serverPort=0": "", "--memory -o admin.enableServer=false": "", "--memory -o gozkd.web=off": "",
	} {
		if c := good(t, "", nil, strings.Fields(args)...).Config; c.AdminOmitted != omitted {
			t.Errorf("%s: the admin server is omitted because of %q, want %q", args, c.AdminOmitted, omitted)
		}
	}
	if inv := good(t, "", nil, "--memory"); inv.Ensemble != 0 || inv.Config.Server.Tick != 3*time.Second {
		t.Errorf("a server without --ensemble: %+v", inv)
	}
	if inv := good(t, "clientPort=65533", nil, "--memory", "--ensemble", "3"); inv.Config.ClientPort != 65533 {
		t.Errorf("%+v", inv)
	}
}

// Each wrong combination gives one error with the flag, its value and advice.
func TestEnsemble_Refused(t *testing.T) {
	for _, c := range []struct {
		zooCfg string
		env    map[string]string
		args   []string
		want   string
	}{
		{"", nil, []string{"--ensemble", "x"}, `--ensemble: is "x"; allowed: a whole number from 1 to 9`},
		{"", nil, []string{"--ensemble", "0"}, `--ensemble: is "0"; allowed: a whole number from 1 to 9`},
		{"", nil, []string{"--ensemble", "10"}, `--ensemble: is "10"; allowed: a whole number from 1 to 9`},
		{"", nil, []string{"--faults-port", "0"}, "--faults-port: is a flag of gozkd-testkit, the servers for tests: run gozkd-testkit --faults-port PORT"},
		{"server.1=a:1:2\nserver.2=b:1:2\nserver.3=c:1:2\n", nil, []string{"--ensemble", "3"},
			"--ensemble: is 3, but server.1 is set (zoo.cfg:1), and the members of --ensemble find each other in this process: remove all server lines, or omit --ensemble"},
		{"", map[string]string{"ZOO_SERVERS": "server.4=a:1:2"}, []string{"--ensemble", "3"},
			"--ensemble: is 3, but server.4 is set (ZOO_SERVERS), and the members of --ensemble find each other in this process: remove all server lines, or omit --ensemble"},
		{"", nil, []string{"--ensemble", "3", "--id", "2"}, "--ensemble: is 3, but myid is 2 (--id), and the members of --ensemble are numbered from 1: remove it, or omit --ensemble"},
		{"", map[string]string{"ZOO_MY_ID": "1"}, []string{"--ensemble", "7"},
			"--ensemble: is 7, but myid is 1 (ZOO_MY_ID), and the members of --ensemble are numbered from 1: remove it, or omit --ensemble"},
		{"", nil, []string{"--ensemble", "3", "--client-port", "65534"},
			"--ensemble: is 3, but clientPort is 65534, so the client ports are up to 65536: set it to 0, or to 65533 at most, or omit --ensemble"},
		{"group.1=1:2", nil, []string{"--ensemble", "3"}, "zoo.cfg:1: group.1: belongs to hierarchical quorums, which are not supported: each participant has one vote, and a majority decides; remove the keys group.* and weight.* from all servers if that suits you"},
	} {
		wantLines(t, problems(t, c.zooCfg, c.env, append(c.args, "--memory")...), c.want)
	}
	t.Chdir(t.TempDir())
	write(t, "d/myid", "2\n")
	_, err := load([]string{"--ensemble", "3", "--data-dir", "d"}, func(string) string { return "" }, nil)
	if want := "--ensemble: is 3, but d/myid says that this is server 2, and the members of --ensemble are numbered from 1: use another directory, or omit --ensemble"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
