package main

import (
	"bufio"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/program"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) {
	program.RunMain(main)
	goleak.VerifyTestMain(watchdog.Watch(m))
}

// addresses is the content of a port file.
type addresses struct {
	Client  string
	Members []struct {
		ID     int
		Client string
	}
	Faults string
}

func connect(t *testing.T, addresses string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(strings.Split(addresses, ","), 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestServe_Faults(t *testing.T) {
	for _, args := range [][]string{{}, {"--ensemble", "3"}} {
		var a addresses
		p := program.Launch(t, &a, args...)
		if len(a.Members) != max(1, 3*len(args)/2) {
			t.Fatalf("%q: %+v", args, a)
		}
		if _, err := connect(t, a.Client).Create("/a", []byte("x"), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
		ask := func(method, path string) string {
			r, err := http.NewRequestWithContext(t.Context(), method, a.Faults+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != 200 {
				t.Errorf("%s: %d %s %v", path, response.StatusCode, body, err)
			}
			return string(body)
		}
		if tree := ask("GET", "/tree"); !strings.Contains(tree, `"/a":"x"`) {
			t.Errorf("%q: %s", args, tree)
		}
		ask("POST", "/members/1/kill")
		ask("POST", "/members/1/start")
		c := connect(t, a.Members[0].Client)
		if _, err := c.Sync("/a"); err != nil {
			t.Fatal(err)
		}
		if data, _, err := c.Get("/a"); err != nil || string(data) != "x" {
			t.Errorf("%q: %q %v", args, data, err)
		}
		http.DefaultClient.CloseIdleConnections()
		if status := p.Stop(syscall.SIGTERM); status != 0 {
			t.Errorf("exit status %d", status)
		}
	}
}

func TestRun_WrongOrImpossible(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct {
		args   string
		status int
		text   string
	}{
		{"--client-port " + port, 1, "address already in use; stop what listens there, or choose another port: --client-port"},
		{"--faults-port " + port, 1, "port for faults: listen tcp 127.0.0.1:" + port + ": bind: address already in use; stop what listens there, or choose another port: --faults-port"},
		{"--port-file no/such/dir", 1, "port file: "},
		{"--ensemble 10", 2, "--ensemble is 10; allowed: 1 to 9"},
		{"--ensemble x", 2, `invalid value "x" for flag -ensemble`},
		{"--faults-port 65536", 2, "--faults-port is 65536; allowed: 0 to 65535"},
		{"--faults-port -1", 2, "--faults-port is -1; allowed: 0 to 65535"},
		{"--ensemble 3 --client-port 65534", 2, "--client-port is 65534; allowed: 0 to 65533"},
		{"--ensemble 3 --client-port 2181 --faults-port 2183", 2, "--faults-port is 2183, which is a client port: these are 2181 to 2183"},
		{"--log-level loud", 2, `--log-level is "loud"`},
		{"serve", 2, `unexpected argument "serve"`},
	} {
		var stdout, stderr strings.Builder
		args := strings.Fields(c.args)
		if c.status == 1 {
			args = append(args, "--log-level", "off")
		}
		status := run(args, strings.NewReader(""), &stdout, &stderr)
		if status != c.status || strings.Count(stderr.String(), "gozkd-testkit: ") != 1 || !strings.Contains(stderr.String(), c.text) {
			t.Errorf("%s: %d %q, want %d and %q", c.args, status, &stderr, c.status, c.text)
		}
	}
	var stdout, stderr strings.Builder
	if status := run([]string{"--help"}, strings.NewReader(""), &stdout, &stderr); status != 0 || stdout.String() != usage || stderr.Len() > 0 {
		t.Errorf("--help: %d", status)
	}
}

// TestRun_EndsWithItsInput: with --stdin the program says where it listens, and ends with the
// program that started it.
func TestRun_EndsWithItsInput(t *testing.T) {
	in, other := io.Pipe()
	output, out := io.Pipe()
	ended := make(chan int, 1)
	go func() { ended <- run([]string{"--stdin", "--log-level", "off"}, in, out, io.Discard) }() // ends with in
	url, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Get(strings.TrimSpace(url) + "/status")
	if err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%q: %v", url, err)
	}
	_ = other.Close() // never fails
	if status := <-ended; status != 0 {
		t.Errorf("status %d", status)
	}
}
