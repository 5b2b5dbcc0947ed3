// Package config asks ZooKeeper with which configurations it starts.
package config

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/zkconfigs"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// recordedAnswers has other people's configurations, and with which of them ZooKeeper starts. Tests
// of cmd/gozkd compare gozkd's answers with these.
const recordedAnswers = "../../../cmd/gozkd/internal/config/testdata/zookeeper"

var (
	askZooKeeper = flag.String("zookeeper", "", "ask ZooKeeper which configurations it starts with: compare, or record the answers")
	askedPart    = flag.String("part", "0/1", "K/N: compare the answers of every Nth line, from line K modulo N on")
)

// The recorded answers are those of ZooKeeper: for each line of keys.txt, on a server alone and on
// a member of an ensemble, and for each recorded configuration. `make compat-config` runs this
// test, which needs Java and Maven.
func TestZooKeeper_RecordedAnswers(t *testing.T) {
	if *askZooKeeper == "" {
		t.Skip("needs Java: make compat-config")
	}
	z := &zooKeeper{t: t, work: t.TempDir()}
	if _, err := fmt.Sscanf(*askedPart, "%d/%d", &z.first, &z.every); err != nil || z.every < 1 || z.first < 0 {
		t.Fatalf("-part %s: give a number and a divisor, such as 7/4", *askedPart)
	}
	root := install.Root(t.Context())
	if err := must.Try(func() {
		z.classPath = install.Maven(t.Context(), root, "config", filepath.Join(root, "test", "compat", "java", "config", "pom.xml"))
		z.stores = server.MakeStores(t.Context(), z.work)
	}); err != nil {
		t.Fatal(err)
	}
	for name, answers := range map[string]func(string) string{"keys.txt": z.keys, "answers.txt": z.configurations} {
		path := filepath.Join(recordedAnswers, name)
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		after := answers(string(before)) // with unchanged lines of the other parts
		if *askZooKeeper == "record" {
			if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if after != string(before) {
			t.Errorf("%s: ZooKeeper answers\n%s", name, after)
		}
	}
}

// zooKeeper starts servers.
type zooKeeper struct {
	t               *testing.T
	work, classPath string
	stores          server.Stores
	first, every    int // which lines it answers
}

// asked reports whether the i-th line is in the part that is asked for.
func (z *zooKeeper) asked(i int) bool { return i%z.every == z.first%z.every }

// keys answers the lines of keys.txt: the answer alone, the answer in an ensemble, and the setting.
func (z *zooKeeper) keys(text string) string {
	const (
		alone   = "dataDir=/data\nclientPort=2181\ntickTime=2000\ninitLimit=10\nsyncLimit=5\n"
		members = "server.1=a.example:2888:3888\nserver.2=b.example:2888:3888\nserver.3=c.example:2888:3888\n"
	)
	lines := slices.Collect(strings.Lines(text))
	setting := func(line string) string { return strings.TrimSpace(line[strings.LastIndexByte(line, '\t')+1:]) }
	var settings []string
	asked := make(map[string]bool)
	for i, line := range lines {
		settings = append(settings, setting(line))
		asked[setting(line)] = z.asked(i)
	}
	answers := make(map[string]string)
	for _, batch := range batches(settings) { // a part's are within those of the whole, which were recorded
		batch = slices.DeleteFunc(batch, func(s string) bool { return !asked[s] })
		for _, base := range []string{alone, alone + members} {
			if len(batch) > 0 {
				z.answer(base, batch, answers)
			}
		}
	}
	var out strings.Builder
	for i, line := range lines {
		if s := setting(line); z.asked(i) {
			line = answers[s] + s + "\n"
		}
		out.WriteString(line)
	}
	return out.String()
}

// batches splits settings into groups without a repeated key. A key that decides about others
// stands alone: a class, and a group of servers, which is refused or not depending on weights.
func batches(settings []string) (all [][]string) {
	seen := make(map[string]int)
	var alone [][]string
	for _, s := range settings {
		key, _, _ := strings.Cut(s, "=")
		if slices.Contains([]string{"serverCnxnFactory", "metricsProvider.className", "group.1", "weight.1"}, key) {
			alone = append(alone, []string{s})
			continue
		}
		n := seen[key]
		seen[key]++
		if n == len(all) {
			all = append(all, nil)
		}
		all[n] = append(all[n], s)
	}
	return append(all, alone...)
}

// answer adds an answer to that of each setting of a batch. A server that starts with all of them
// starts with each.
func (z *zooKeeper) answer(base string, batch []string, answers map[string]string) {
	started, why := z.starts(base+strings.Join(batch, "\n")+"\n", func(string) []byte { return nil })
	switch {
	case strings.Contains(why, "BindException"): // another program took a port
		z.answer(base, batch, answers)
	case started:
		for _, s := range batch {
			answers[s] += "starts\t"
		}
	case len(batch) == 1:
		answers[batch[0]] += "refuses\t"
	default:
		z.answer(base, batch[:len(batch)/2], answers)
		z.answer(base, batch[len(batch)/2:], answers)
	}
}

// configurations answers the recorded configurations: name, answer, and why ZooKeeper refuses.
func (z *zooKeeper) configurations(text string) string {
	before := make(map[string]string)
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "\t")
		before[name] = line
	}
	paths, err := filepath.Glob(filepath.Join(recordedAnswers, "configurations", "*.cfg"))
	if err != nil {
		z.t.Fatal(err)
	}
	var out strings.Builder
	for i, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".cfg")
		if !z.asked(i) {
			out.WriteString(before[name])
			continue
		}
		file := func(extension string) []byte { // or nil
			b, err := os.ReadFile(filepath.Join(recordedAnswers, "configurations", name+"."+extension))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				z.t.Fatal(err)
			}
			return b
		}
		if started, why := z.starts(string(file("cfg")), file); started {
			fmt.Fprintf(&out, "%s\tstarts\n", name)
		} else {
			fmt.Fprintf(&out, "%s\trefuses\t%s\n", name, why)
		}
	}
	return out.String()
}

var (
	// lastStep is logged after the ports are open, when ZooKeeper is about to wait for its end, and
	// when it gives up.
	lastStep = regexp.MustCompile(`ZooKeeper audit is (en|dis)abled`)
	// cause finds the exceptions in a log.
	cause = regexp.MustCompile(`(?m)^(?:Caused by: )?([\w.$]+(?:Exception|Error): .*)$`)
)

const quietLogback = `<configuration><appender name="OUT" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%p - %m%n</pattern></encoder></appender><root level="INFO"><appender-ref ref="OUT"/></root></configuration>`

// starts reports whether ZooKeeper starts with a configuration, and why it does not. file returns
// the file that a key names, or that the operator gives the JVM ("jaas"), or nil for none.
func (z *zooKeeper) starts(text string, file func(key string) []byte) (started bool, why string) {
	const patience, settled = time.Minute, 500 * time.Millisecond
	ports := make(map[int]bool) // of this configuration: each is another one
	port := func() (p int) {
		for p == 0 || ports[p] {
			p = must.Get(server.FreePorts(1))[0]
		}
		ports[p] = true
		return p
	}
	dir, err := os.MkdirTemp(z.work, "")
	if err != nil {
		z.t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // goes with the test otherwise
	err = must.Try(func() {
		c := zkconfigs.Place(text, dir, port, func(key, path string) []byte {
			if b := file(key); b != nil {
				return b
			}
			return z.store(key, path)
		})
		logging := filepath.Join(dir, "logback.xml")
		must.Do(os.WriteFile(logging, []byte(quietLogback), 0o644))
		flags := []string{"-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlogback.configurationFile=" + logging}
		if jaas := file("jaas"); jaas != nil {
			must.Do(os.WriteFile(filepath.Join(dir, "jaas.conf"), jaas, 0o600))
			flags = append(flags, "-Djava.security.auth.login.config="+filepath.Join(dir, "jaas.conf"))
		}
		cmd := exec.Command("java", append(flags, "-cp", z.classPath, "org.apache.zookeeper.server.quorum.QuorumPeerMain", c.File)...)
		cmd.Dir = dir
		p := server.Start("ZooKeeper", cmd, filepath.Join(dir, "zookeeper.out"))
		defer must.Finally(p.Kill)
		poll, end := time.NewTicker(50*time.Millisecond), time.Now().Add(patience)
		defer poll.Stop()
		for wait := (<-chan time.Time)(nil); ; {
			select {
			case <-p.Done():
				if all := cause.FindAllStringSubmatch(p.Log(), -1); len(all) > 0 {
					why = strings.ReplaceAll(all[len(all)-1][1], dir, "")
				}
				return
			case <-wait:
				started = true
				return
			case now := <-poll.C:
				if log := p.Log(); wait == nil && lastStep.MatchString(log) && !strings.Contains(log, "exiting abnormally") {
					wait = time.After(settled)
				} else if now.After(end) {
					must.Failf("ZooKeeper neither starts nor ends with\n%s\n%s", text, p.Log())
				}
			}
		}
	})
	if err != nil {
		z.t.Fatal(err)
	}
	return started, why
}

// store returns the key or trust store, or the password, for a path in a configuration.
func (z *zooKeeper) store(key, path string) []byte {
	if strings.HasSuffix(key, "passwordPath") {
		return []byte(server.StorePassword)
	}
	name := "server" + filepath.Ext(path)
	switch trust := strings.Contains(key, "trustStore"); {
	case !strings.HasSuffix(key, ".location"):
		return nil
	case trust && name == "server.pem":
		name = "ca.pem"
	case trust:
		name = "trust" + filepath.Ext(path)
	}
	return must.Get(os.ReadFile(z.stores.File(name)))
}
