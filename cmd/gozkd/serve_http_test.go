package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gozkd/gozkd/internal/config"
	"github.com/gozkd/gozkd/server"
)

// fetch asks for a URL.
func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	return request(t, http.MethodGet, url)
}

func request(t *testing.T, method, url string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// What ZooKeeper's keys ask for is there, and the port file says where.
func TestServe_Endpoints(t *testing.T) {
	p := launch(t, "--memory", "--client-port", "0", "-o", "admin.serverPort=0", "-o", "admin.commandURL=/zk/", "-o", "gozkd.pprof=true",
		"-o", "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
		"-o", "metricsProvider.httpPort=0", "-o", "metricsProvider.httpHost=127.0.0.1")
	if !strings.HasPrefix(p.ports.Admin, "http://127.0.0.1:") || !strings.HasSuffix(p.ports.Admin, "/zk") {
		t.Fatalf("port file %s", p.raw)
	}
	status, body := fetch(t, p.ports.Admin+"/ruok")
	var answer struct{ Command string }
	if err := json.Unmarshal([]byte(body), &answer); status != 200 || err != nil || answer.Command != "ruok" {
		t.Errorf("ruok: %d %s %v", status, body, err)
	}
	if _, body := request(t, http.MethodPost, p.ports.Admin+"/reload"); !strings.Contains(body, `"command": "reload"`) || !strings.Contains(body, `"error": null`) {
		t.Errorf("reload: %s", body)
	}
	if status, _ := fetch(t, strings.TrimSuffix(p.ports.Admin, "/zk")+"/readyz"); status != 200 {
		t.Errorf("readyz: %d", status)
	}
	base := strings.TrimSuffix(p.ports.Admin, "/zk")
	if status, body := fetch(t, base+"/debug/pprof/goroutine?debug=1"); status != 200 || !strings.HasPrefix(body, "goroutine profile:") {
		t.Errorf("profile: %d %.80s", status, body)
	}
	status, body = fetch(t, p.ports.Metrics)
	for _, line := range []string{"\nznode_count ", "\ngo_goroutines ", "\nprocess_resident_memory_bytes "} {
		if status != 200 || !strings.Contains(body, line) {
			t.Errorf("metrics have no %q: %d", line, status)
		}
	}
	if status := p.stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// Taken ports keep nobody from serving clients.
func TestServe_EndpointsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	port := strconv.Itoa(taken.Addr().(*net.TCPAddr).Port)
	p := launch(t, "--memory", "--client-port", "0", "-o", "admin.serverPort="+port, "-o", "metricsProvider.httpHost=127.0.0.1",
		"-o", "metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider", "-o", "metricsProvider.httpPort="+port)
	if p.ports.Admin != "" || p.ports.Metrics != "" {
		t.Errorf("port file %s", p.raw)
	}
	put(t, p.ports.Client, "/a")
	if status := p.stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, line := range []string{"not served: admin server: address=127.0.0.1:" + port, "not served: metrics: address=127.0.0.1:" + port} {
		if !strings.Contains(p.stderr.String(), line) {
			t.Errorf("no %q in\n%s", line, &p.stderr)
		}
	}
}

// Profiles are for this machine only, wherever the admin server listens.
func TestHere(t *testing.T) {
	h := here(http.NotFoundHandler())
	for from, want := range map[string]int{"127.0.0.1:5": 404, "[::1]:5": 404, "[::ffff:127.0.0.1]:5": 404, "10.0.0.1:5": 403, "pipe": 403} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, &http.Request{RemoteAddr: from})
		if w.Code != want {
			t.Errorf("%s: %d, want %d", from, w.Code, want)
		}
	}
}

// What tells of the process is left out where metricsProvider.exportJvmInfo is false.
func TestMetricsHandler(t *testing.T) {
	s, err := server.New(server.Config{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, runtime := range []bool{true, false} {
		w := httptest.NewRecorder()
		metricsHandler(config.Config{MetricsRuntime: runtime}, s).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if got := strings.Contains(w.Body.String(), "go_goroutines"); w.Code != 200 || got != runtime {
			t.Errorf("with the runtime: %t, wanted: %t, status %d", got, runtime, w.Code)
		}
	}
}
