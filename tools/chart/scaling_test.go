package chart

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	corev1 "k8s.io/api/core/v1"
)

// pods plays the pods of the chart on addresses of this machine, 127.x.y.N for server N, with the
// arguments and the environment of their containers.
type pods struct {
	t       *testing.T
	gozkd   string
	dir     string
	network string // "127.x.y."
	config  string
	pod     corev1.PodSpec
	wanted  atomic.Int32 // what Kubernetes says
	running map[int]*exec.Cmd
	logs    map[int]*bytes.Buffer
}

// TestScaling changes the number of servers under load, as the values scaling promise: nobody else
// restarts, no write fails, and the members are as many as there should be.
func TestScaling(t *testing.T) {
	c, err := loader.Load(*dir)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{
		"replicas": 3, "scaling": map[string]any{"enabled": true}, "peerSecret": map[string]any{"secretName": "p"}, "metrics": map[string]any{"enabled": false},
		"foundUntil": time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "config": map[string]any{"quorumListenOnAllIPs": false},
	}
	three, err := render(c, values)
	if err != nil {
		t.Fatal(err)
	}
	values["replicas"] = 5
	five, err := render(c, values)
	if err != nil || !reflect.DeepEqual(three.set.Spec.Template, five.set.Spec.Template) || !reflect.DeepEqual(three.maps, five.maps) {
		t.Fatalf("replicas change the template of the pods, or a ConfigMap, so that all pods restart: %v", err)
	}
	p := play(t, three)
	p.wanted.Store(3)
	for id := range 3 {
		p.start(id + 1)
	}
	p.members("1 2 3")
	p.cli(1, "create", "/load")
	written, failed := p.load()

	p.wanted.Store(5)
	p.start(4)
	p.start(5)
	p.members("1 2 3 4 5")
	p.handOver(5)
	p.wanted.Store(3)
	p.stop(4, 5)
	p.members("1 2 3")
	p.wanted.Store(4)
	p.start(4) // with its old volume
	p.members("1 2 3 4")
	p.stop(4) // a restart, as of an update
	p.members("1 2 3 4")
	p.start(4)
	p.members("1 2 3 4")

	n := written()
	if err := failed(); err != nil {
		t.Error(err)
	}
	if list := p.cli(1, "ls", "/load"); strings.Count(list, "n0") != n || n == 0 {
		t.Errorf("%d writes were answered, and there are\n%s", n, list)
	}
	p.wanted.Store(0) // everybody is stopped, and nobody leaves
	p.stop(1, 2, 3, 4)
	for id := 1; id <= 4; id++ {
		if strings.Contains(p.logs[id].String(), "joins=false") {
			t.Errorf("server %d left, although all were stopped:\n%s", id, p.logs[id])
		}
	}
}

func play(t *testing.T, r *rendered) *pods {
	p := &pods{t: t, dir: t.TempDir(), network: fmt.Sprintf("127.%d.%d.", 20+rand.IntN(200), rand.IntN(255)), pod: r.set.Spec.Template.Spec,
		running: make(map[int]*exec.Cmd), logs: make(map[int]*bytes.Buffer)}
	kubernetes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path != "/apis/apps/v1/namespaces/prod/statefulsets/zk-gozkd/scale" {
			http.NotFound(w, req)
		} else if n := p.wanted.Load(); n > 0 { // Kubernetes leaves 0 out
			fmt.Fprintf(w, `{"kind":"Scale","spec":{"replicas":%d},"status":{"replicas":1}}`, n)
		} else {
			fmt.Fprint(w, `{"kind":"Scale","spec":{}}`)
		}
	}))
	t.Cleanup(kubernetes.Close)
	var err error
	if p.gozkd, err = filepath.Abs(*gozkd); err != nil {
		t.Fatal(err)
	}
	if err = secrets(p.dir); err != nil {
		t.Fatal(err)
	}
	p.config = strings.NewReplacer("https://kubernetes.default.svc", kubernetes.URL).Replace(r.maps[r.set.Name].Data["zoo.cfg"])
	t.Cleanup(func() {
		for id, cmd := range p.running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if t.Failed() {
				t.Logf("server %d:\n%s", id, p.logs[id])
			}
		}
	})
	return p
}

// command returns a container of pod N.
func (p *pods) command(id int, c corev1.Container) *exec.Cmd {
	dir := filepath.Join(p.dir, fmt.Sprint(id))
	here := func(text string) string {
		for n := range 9 {
			text = strings.ReplaceAll(text, fmt.Sprintf("zk-gozkd-%d.zk-gozkd-headless.prod.svc.cluster.local:2888:3888;2181", n),
				fmt.Sprintf("%s%d:2888:3888;%[1]s%[2]d:2181", p.network, n))
		}
		return text
	}
	config := strings.NewReplacer("0.0.0.0", p.network+fmt.Sprint(id), "=/peer/", "="+p.dir+"/peer/", "=/data", "="+dir+"/data").Replace(here(p.config))
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		p.t.Fatal(err)
	}
	var args []string
	for _, arg := range c.Args {
		arg = strings.NewReplacer("$(ZOO_MY_ID)", fmt.Sprint(id), "$(FOUND_UNTIL)", time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "/conf/zoo.cfg", file).Replace(arg)
		args = append(args, here(arg))
	}
	cmd := exec.Command(p.gozkd, args...)
	cmd.Env = []string{fmt.Sprint("ZOO_MY_ID=", id)}
	return cmd
}

// start starts a pod, and waits until it is ready. The first servers are ready together.
func (p *pods) start(id int) {
	if out, err := p.command(id, p.pod.InitContainers[0]).CombinedOutput(); err != nil {
		p.t.Fatalf("init of server %d: %v\n%s", id, err, out)
	}
	cmd := p.command(id, p.pod.Containers[0])
	log := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.running[id], p.logs[id] = cmd, log
}

// stop ends pods at the same time. They must end well.
func (p *pods) stop(ids ...int) {
	for _, id := range ids {
		if err := p.running[id].Process.Signal(syscall.SIGTERM); err != nil {
			p.t.Fatal(err)
		}
	}
	for _, id := range ids {
		if err := p.running[id].Wait(); err != nil {
			p.t.Fatalf("server %d: %v\n%s", id, err, p.logs[id])
		}
		delete(p.running, id)
	}
}

func (p *pods) admin(id int) string { return fmt.Sprintf("http://%s%d:8080", p.network, id) }

// says runs the program, which must succeed.
func (p *pods) says(args ...string) string {
	out, err := exec.Command(p.gozkd, args...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// handOver makes the leader hand over to a server, which has just become a voter and may not be in
// step for a moment.
func (p *pods) handOver(to int) {
	leader, begin := p.leader(), time.Now()
	token := filepath.Join(p.dir, fmt.Sprint(leader), "data/admin.token")
	for {
		out, err := exec.Command(p.gozkd, "admin", "--url", p.admin(leader), "--auth-file", token, "transfer_leadership", fmt.Sprint("to=", to)).CombinedOutput()
		if err == nil {
			return
		}
		if !strings.Contains(string(out), "try again when all members are in step") || time.Since(begin) > 20*time.Second {
			p.t.Fatalf("server %d does not hand over to %d: %v\n%s", leader, to, err, out)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (p *pods) cli(id int, words ...string) string {
	return p.says(append([]string{"cli", "-waitforconnection", "-server", fmt.Sprintf("%s%d:2181", p.network, id)}, words...)...)
}

// leader returns the server that leads.
func (p *pods) leader() int {
	for id := range p.running {
		if strings.Contains(p.says("status", "-server", fmt.Sprintf("%s%d:2181", p.network, id)), "leader") {
			return id
		}
	}
	p.t.Fatal("nobody leads")
	return 0
}

// members waits until these servers, and no others, vote and are ready.
func (p *pods) members(want string) {
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		var voters []string
		text := "\n" + p.cli(1, "config")
		for id := range 9 {
			if strings.Contains(text, fmt.Sprintf("\nserver.%d=", id)) && strings.Contains(text, fmt.Sprintf("%s%d:2888:3888:participant", p.network, id)) {
				voters = append(voters, fmt.Sprint(id))
			}
		}
		if slices.Equal(voters, strings.Fields(want)) {
			return
		}
		if time.Since(began) > time.Minute {
			p.t.Fatalf("the members are %v, want %s:\n%s", voters, want, text)
		}
	}
}

// load writes until written is called, which returns how many writes were answered. failed returns
// the first failure.
func (p *pods) load() (written func() int, failed func() error) {
	end, ended := make(chan struct{}), make(chan struct{})
	n := 0
	var err error
	var servers []string
	for id := range 3 {
		servers = append(servers, fmt.Sprintf("%s%d:2181", p.network, id+1))
	}
	go func() { // ends when written is called
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
			}
			var out []byte
			if out, err = exec.Command(p.gozkd, "cli", "-server", strings.Join(servers, ","), "create", "-s", "/load/n").CombinedOutput(); err != nil {
				err = fmt.Errorf("write %d: %w\n%s", n, err, out)
				return
			}
			n++
		}
	}()
	return func() int { close(end); <-ended; return n }, func() error { return err }
}
