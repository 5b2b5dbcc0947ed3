package main

import (
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
)

// file returns the matches of pattern in a file of deploy.
func file(t *testing.T, name, pattern string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		t.Fatalf("%s has nothing like %s", name, pattern)
	}
	return found
}

// loads loads a command line in an environment without warnings.
func loads(t *testing.T, words []string, env map[string]string) config.Config {
	t.Helper()
	args, ok := asGozkd("/bin/gozkd", words)
	if !ok {
		t.Fatalf("%q is not understood", words)
	}
	var names []string
	for name := range env {
		names = append(names, name)
	}
	inv, c, err := config.Load(args, func(name string) string { return env[name] }, names)
	if err != nil || len(inv.Warnings) > 0 || inv.Command != config.Serve {
		t.Fatalf("%q: %v %q", words, err, inv.Warnings)
	}
	return c
}

// dockerfile returns the environment of the image and its command.
func dockerfile(t *testing.T) (env map[string]string, command []string) {
	t.Helper()
	env = make(map[string]string)
	for _, word := range strings.Fields(file(t, "Dockerfile", `(?m)^ENV (.*)$`)[0][1]) {
		name, value, _ := strings.Cut(word, "=")
		env[name] = value
	}
	for _, m := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(file(t, "Dockerfile", `(?m)^CMD (.*)$`)[0][1], -1) {
		command = append(command, m[1])
	}
	return env, command
}

// The image as it is built serves one server.
func TestDockerfile(t *testing.T) {
	env, command := dockerfile(t)
	c := loads(t, command, env)
	if c.Server.Dir != "/data" || c.Server.LogDir != "/datalog" || c.ListenAddress() != ":2181" || config.HostPort(c.AdminAddress, c.AdminPort) != ":8080" {
		t.Errorf("%+v", c)
	}
	ports := strings.Fields(file(t, "Dockerfile", `(?m)^EXPOSE (.*)$`)[0][1])
	for _, port := range []int{c.ClientPort, c.AdminPort, c.MetricsPort, 2888, 3888} {
		if !slices.Contains(ports, strconv.Itoa(port)) {
			t.Errorf("port %d is not exposed: %v", port, ports)
		}
	}
	source, err := os.ReadFile("../../internal/version/version.go")
	if err != nil || !strings.Contains(string(source), "\nvar tag, revision string\n") {
		t.Errorf("the Dockerfile sets tag and revision of internal/version, which has none: %v", err)
	}
	for _, set := range []string{"tag=$VERSION", "revision=$REVISION"} {
		file(t, "Dockerfile", regexp.QuoteMeta("-X github.com/gozkd/gozkd/internal/version."+set))
	}
	for _, m := range file(t, "Dockerfile", `for script in (.*);`) {
		for _, script := range strings.Fields(strings.TrimSuffix(m[1], "; do ln -s gozkd \"/image/bin/$script.sh\"")) {
			if _, ok := scripts[script]; !ok {
				t.Errorf("the image has %s, which the program does not know", script)
			}
		}
	}
}

// The image has the authorities that the HTTPS of object storage needs, where Go looks for them: it
// is otherwise empty.
func TestDockerfile_Authorities(t *testing.T) {
	file(t, "Dockerfile", `(?m)^FROM scratch$`)
	file(t, "Dockerfile", `(?m)^COPY --from=build /etc/ssl/certs/ca-certificates\.crt /etc/ssl/certs/$`)
}

// The build of the image gets every file that the program embeds.
func TestDockerfile_EmbeddedFiles(t *testing.T) {
	root := filepath.Join("..", "..")
	ignored := ignoredByDocker(t, filepath.Join(root, "deploy", "Dockerfile.dockerignore"))
	embedded := 0
	err := filepath.WalkDir(root, func(dir string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		if name := e.Name(); dir != root && (name == "testdata" || name == "test" || name == "testkit" || name == "bench" || name[0] == '.') {
			return filepath.SkipDir // not in the program
		}
		p, err := build.ImportDir(dir, 0)
		if err != nil {
			return nil // no package
		}
		for _, pattern := range p.EmbedPatterns {
			found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
			if err != nil || len(found) == 0 {
				t.Errorf("%s embeds %s: %v", dir, pattern, err)
			}
			for _, top := range found {
				err := filepath.WalkDir(top, func(file string, e fs.DirEntry, err error) error {
					if err != nil || e.IsDir() {
						return err
					}
					name, err := filepath.Rel(root, file)
					if name = filepath.ToSlash(name); ignored(name) {
						t.Errorf("%s is not in the context of the build", name)
					}
					embedded++
					return err
				})
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil || embedded < 30 || !ignored("README.md") || !ignored("wal/wal_test.go") || ignored("wal/wal.go") {
		t.Errorf("%d embedded files, %v", embedded, err)
	}
}

// ignoredByDocker returns a function that reports whether the context of a build leaves a file out.
// The last pattern that matches decides.
func ignoredByDocker(t *testing.T, name string) func(file string) bool {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	type rule struct {
		matches *regexp.Regexp
		ignores bool
	}
	var rules []rule
	for _, line := range strings.Fields(string(text)) {
		pattern, kept := strings.CutPrefix(line, "!")
		pattern = strings.NewReplacer("\\*\\*/", "(.*/)?", "\\*\\*", ".*", "\\*", "[^/]*").Replace(regexp.QuoteMeta(pattern))
		rules = append(rules, rule{regexp.MustCompile("^" + pattern + "(/.*)?$"), !kept})
	}
	return func(file string) (ignored bool) {
		for _, r := range rules {
			if r.matches.MatchString(file) {
				ignored = r.ignores
			}
		}
		return ignored
	}
}

// Each server of the compose file is one of three.
func TestCompose(t *testing.T) {
	env, command := dockerfile(t)
	for _, m := range file(t, "compose.yaml", `(?m)^  (ZOO_[A-Z0-9_]+): (.*)$`) {
		env[m[1]] = m[2]
	}
	ids := file(t, "compose.yaml", `(?m)^    hostname: zoo(\d)\n    environment:\n      <<: \*environment\n      ZOO_MY_ID: (\d)$`)
	if len(ids) != 3 {
		t.Fatalf("%d servers", len(ids))
	}
	for _, id := range ids {
		env["ZOO_MY_ID"] = id[2]
		// A port published without an address is open to the whole network.
		file(t, "compose.yaml", `(?m)^    ports: \["127\.0\.0\.1:218`+id[1]+`:2181"\]$`)
		c := loads(t, command, env)
		if id[1] != id[2] || len(c.Members) != 3 || c.Members[c.MyID-1].Host != "zoo"+id[1] {
			t.Errorf("server %s: %+v", id[2], c)
		}
	}
}

// The unit starts what the program understands, and waits for what the program tells.
func TestUnit(t *testing.T) {
	file(t, "gozkd.service", `(?m)^Type=notify$`)
	words := strings.Fields(file(t, "gozkd.service", `(?m)^ExecStart=(.*)$`)[0][1])
	path := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(path, []byte("dataDir=/var/lib/gozkd\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if i := slices.Index(words, "/etc/gozkd/zoo.cfg"); i > 0 {
		words[i] = path
	}
	if c := loads(t, words[1:], nil); c.Server.Dir != "/var/lib/gozkd" {
		t.Errorf("%+v", c)
	}
}

// The unit that the timer starts runs a command that the program understands, and waits for a
// configuration.
func TestUnit_Verify(t *testing.T) {
	file(t, "gozkd-verify.timer", `(?m)^OnCalendar=`)
	env := file(t, "gozkd-verify.service", `(?m)^ConditionPathExists=(.*)$`)[0][1]
	if from := file(t, "gozkd-verify.service", `(?m)^EnvironmentFile=(.*)$`)[0][1]; from != env {
		t.Errorf("waits for %s, and reads %s", env, from)
	}
	words := strings.Fields(file(t, "gozkd-verify.service", `(?m)^ExecStart=(.*)$`)[0][1])
	flags := slices.Index(words, "$VERIFY_FLAGS") // of verify.env, separated by white space
	words = slices.Replace(words, flags, flags+1, "--ensemble-id=00000000000000ab", "--output=json")
	words[len(words)-1] = "file:///" + strings.TrimPrefix(filepath.ToSlash(t.TempDir()), "/")
	var out, errs strings.Builder
	status := commands[words[1]](t.Context(), words[2:], cli.Env{Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	if status != cli.Failed || !strings.Contains(errs.String(), "there are no objects of an archive") {
		t.Errorf("%q: %d %s", words, status, errs.String())
	}
}

// A process with the environment of the image does what the official image does.
func TestServe_Image(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "words")
	if err := os.WriteFile(secret, []byte("conf\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"ZOO_CONF_DIR": dir, "ZOO_DATA_DIR": filepath.Join(dir, "data"), "ZOO_DATA_LOG_DIR": filepath.Join(dir, "datalog"),
		"ZOO_SERVERS": "server.7=localhost:2888:3888", "ZOO_MY_ID": "7", "ZOO_PORT_NUMBER": "0",
		"ZOO_4LW_COMMANDS_WHITELIST_FILE": secret, "ZOO_ADMIN_SERVER_PORT_NUMBER": "0", "ZOO_ADMIN_SERVER_ADDRESS": "127.0.0.1",
	} {
		t.Setenv(name, value)
	}
	p := launch(t, "zkServer.sh", "start-foreground", "--client-address", "127.0.0.1")
	conf := word(t, p.ports.Client, "conf")
	for _, line := range []string{"tickTime=2000\n", "serverId=7\n", "dataDir=" + filepath.Join(dir, "data") + "\n", "dataLogDir=" + filepath.Join(dir, "datalog") + "\n"} {
		if !strings.Contains(conf, line) {
			t.Errorf("no %q in\n%s", line, conf)
		}
	}
	if status, _ := fetch(t, p.ports.Admin+"/ruok"); status != 200 {
		t.Errorf("admin server: %d", status)
	}
	put(t, p.ports.Client, "/a")
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
