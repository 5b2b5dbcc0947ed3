package main

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/program"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/internal/testkit/zkconfigs"
)

// recordedAnswers has other people's configurations, and with which of them ZooKeeper starts.
const recordedAnswers = "internal/config/testdata/zookeeper"

// Words of docs/reference/differences.md. Configurations that the page sets apart differ as long as
// the page says so.
const (
	noQuorumSASL  = "`quorum.auth.enableSasl=true`, and `group.*` with `weight.*`, prevent the start"
	defaultLimits = "`initLimit` and `syncLimit` have defaults"
	multiAddress  = "`multiAddress.enabled` also works in zoo.cfg"
)

// configurationsThatDiffer says why gozkd and ZooKeeper do not answer these alike.
var configurationsThatDiffer = map[string]string{
	"charm-3.8":          noQuorumSASL,
	"charm-tls-3.9":      noQuorumSASL,
	"hierarchical-3.4":   noQuorumSASL,
	"missing-limits-3.4": defaultLimits,
	"multi-address-3.6":  multiAddress,
}

// check-config and a start accept the configurations of other people's deployments that ZooKeeper
// starts with, and refuse those that ZooKeeper refuses. make test starts a server with every third,
// make exhaustive with all.
func TestServe_RealConfigurations(t *testing.T) {
	answers, err := os.ReadFile(filepath.Join(recordedAnswers, "answers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	differences, err := os.ReadFile("../../docs/reference/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	stores := testca.New(t, "root").Issue(t, testca.Spec{Hosts: []string{"127.0.0.1", "localhost"}}).Files(t)
	for i, line := range slices.Collect(strings.Lines(string(answers))) {
		name, answer, _ := strings.Cut(strings.TrimSpace(line), "\t")
		t.Run(name, func(t *testing.T) {
			wanted := strings.HasPrefix(answer, "starts")
			why, differs := configurationsThatDiffer[name]
			if differs && strings.Contains(strings.Join(strings.Fields(string(differences)), " "), why) {
				wanted = !wanted
			}
			c, flags := realConfiguration(t, name, stores)
			var out, errs strings.Builder
			status := run("gozkd", append([]string{"check-config"}, flags...), outside(&out, &errs))
			if (status == 0) != wanted {
				t.Errorf("ZooKeeper: %s; check-config ends with %d: %s", answer, status, &errs)
			}
			if !exhaustive.Or(i%3 == 0, true) {
				return
			}
			if started, log := starts(t, c, flags); started != wanted {
				t.Errorf("ZooKeeper: %s; serve started: %t: %s", answer, started, log)
			}
		})
	}
}

// realConfiguration places a recorded configuration on this machine and returns the arguments for
// it.
func realConfiguration(t *testing.T, name string, stores testca.Files) (c zkconfigs.Placed, flags []string) {
	t.Helper()
	file := func(extension string) []byte { return recordedFile(t, name, extension) }
	c = zkconfigs.Place(string(file("cfg")), t.TempDir(), func() int { return unusedPort(t) }, func(key, _ string) []byte {
		path := ""
		switch {
		case strings.HasSuffix(key, ".passwordPath"):
			return []byte("storepass")
		case strings.HasSuffix(key, "keyStore.location"):
			path = stores.Key
		case strings.HasSuffix(key, "trustStore.location"):
			path = stores.CA
		default:
			return file(key)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
	flags = []string{c.File}
	if jaas := file("jaas"); jaas != nil {
		flags = append(flags, "-Djava.security.auth.login.config="+filepath.ToSlash(testca.WriteFile(t, filepath.Join(c.Dir, "jaas.conf"), jaas)))
	}
	return c, flags
}

// recordedFile returns a file of a recorded configuration: cfg, jaas, or what the key of that name
// names. It returns nil for none.
func recordedFile(t *testing.T, name, extension string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(recordedAnswers, "configurations", name+"."+extension))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return b
}

// unusedPort returns a port that nobody else takes while the test runs.
func unusedPort(t *testing.T) int {
	t.Helper()
	number, err := strconv.Atoi(reservePorts(t, 1)[0])
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// starts reports whether a server opens a port for clients before it ends, and returns its log if
// not.
func starts(t *testing.T, c zkconfigs.Placed, flags []string) (started bool, log string) {
	t.Helper()
	cmd := program.Command(append([]string{"serve"}, flags...)...)
	var errs strings.Builder
	cmd.Dir, cmd.Stderr = c.Dir, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	// Ends with the process, which is killed below.
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the test looks at the ports
	}()
	defer func() {
		_ = cmd.Process.Kill() // most processes that do not start have ended by then
		<-ended
		log = errs.String()
	}()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	late := watchdog.After(t, 30*time.Second)
	for {
		select {
		case <-ended:
			return false, ""
		case <-late:
			t.Error("the server neither starts nor ends")
			return false, ""
		case <-poll.C:
		}
		for _, port := range c.ClientPorts {
			conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err == nil {
				_ = conn.Close() // carried no data
				return true, ""
			}
		}
	}
}
