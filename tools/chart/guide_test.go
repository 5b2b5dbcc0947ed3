package chart

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/strvals"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// page is the guide whose commands for Helm and kubectl are run, from the root of the repository.
const page = "docs/guide/container.md"

// TestGuide runs the commands of the guide with programs in place of helm, kubectl and gozkd, and
// checks their words against the objects of the chart. A page with a mistake must fail.
func TestGuide(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program, errProgram := filepath.Abs(*gozkd)
	c, errChart := loader.Load(*dir)
	text, err := os.ReadFile(filepath.Join(root, page))
	if err := errors.Join(err, errProgram, errChart); err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		g := &guide{root: root, gozkd: program, chart: c, pods: make(map[string]*corev1.PodSpec)}
		return g.follow(t.TempDir(), text)
	}
	if err := check(string(text)); err != nil {
		t.Error(err)
	}
	for _, mistake := range [][2]string{
		{"--set image.repository=", "--set image.repo="}, {"--set foundUntil=", "--sett foundUntil="}, {"date -u -d '+1 hour' +%FT%TZ", "date -u -d '+1 hour'"},
		{"helm install zk deploy/helm/gozkd", "helm install zk deploy/helm/gozkds"}, {"helm install zk", "helm instal zk"}, {"image.tag=TAG", "image.tag=TAGS"},
		{"exec zk-gozkd-1 --", "exec zk-gozkd-0 --"}, {"/bin/gozkd status /conf", "/gozkd status /conf"}, {"status /conf/zoo.cfg", "status /etc/zoo.cfg"},
		{"gozkd status /conf", "gozkd state /conf"}, {"port-forward zk-gozkd-1 8080", "port-forward zk-gozkd-1 8081"}, {"port-forward zk", "port-forwards zk"},
		{"backup --from http", "backup --form http"}, {"exec restore -c wait -- sh", "exec restore -c await -- sh"}, {"cp copy.db restore:/backup/", "cp copy.db restore:/backups/"},
		{"-- touch /backup/complete", "-- touch /backup/done"}, {"logs -f restore -c restore", "logs -f restore -c wait2"}, {"logs -f restore", "logs --foll restore"},
		{"delete pod restore", "delete pod restored"}, {"claimName: data-zk-gozkd-1", "claimName: data-zk-gozkd-4"}, {"configMap: {name: zk-gozkd}", "configMap: {name: zk}"},
		{"mountPath: /conf}", "mountPaths: /conf}"}, {"{name: config, mountPath", "{name: conf, mountPath"}, {"/conf/zoo.cfg]", "/conf/zoo.cfgs]"},
		{"args: [restore, --from", "args: [restore, --form"}, {"image: REGISTRY/gozkd:TAG", "image: gozkd:TAG"},
		{"`networkPolicy.enabled`", "`networkPolicy.enable`"}, {"`antiAffinity=required`", "`antiAffinity=requires`"}, {"`helm test zk`", "`helm tests zk`"},
	} {
		wrong := strings.Replace(string(text), mistake[0], mistake[1], 1)
		if err := check(wrong); err == nil || wrong == string(text) {
			t.Errorf("%q instead of %q is not noticed", mistake[1], mistake[0])
		}
	}
}

// guide is what a reader of the page has when a command runs.
type guide struct {
	root, gozkd string
	chart       *chart.Chart
	release     *rendered // nil before helm install
	image       string
	pods        map[string]*corev1.PodSpec
	touched     []string // by kubectl exec
}

var (
	indented = regexp.MustCompile(`(?m)^ *\$ ((?:.*\\\n)*.*)$`)
	manifest = regexp.MustCompile("(?s)```yaml\n(apiVersion: v1\nkind: Pod\n.*?)```")
	quoted   = regexp.MustCompile("`([a-zA-Z][a-zA-Z0-9.]*)(?:=([^`]*))?`")
	helmTest = regexp.MustCompile("`helm ([^`]*)`")
)

// follow runs the commands of the page in the order of the page.
func (g *guide) follow(dir, text string) error {
	bin, calls := filepath.Join(dir, "bin"), filepath.Join(dir, "calls")
	if err := os.Mkdir(bin, 0o700); err != nil {
		return err
	}
	for _, name := range []string{"helm", "kubectl", "gozkd"} {
		// A call is a line; the words of a call are separated by a character that no word has.
		stub := fmt.Sprintf("#!/bin/sh\n{ printf %%s %s; for w in \"$@\"; do printf '\\037%%s' \"$w\"; done; echo; } >> '%s'\n", name, calls)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(stub), 0o700); err != nil {
			return err
		}
	}
	_, kubernetes, _ := strings.Cut(text, "\n## Kubernetes\n")
	kubernetes, _, _ = strings.Cut(kubernetes, "\n## ")
	script := "set -e\n"
	for _, m := range indented.FindAllStringSubmatch(kubernetes, -1) {
		script += m[1] + "\nwait\n"
	}
	sh := exec.Command("sh", "-c", script)
	sh.Dir, sh.Env = dir, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	if out, err := sh.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	said, err := os.ReadFile(calls)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(said)) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\x1f")
		run := map[string]func([]string) error{"helm": g.helm, "kubectl": g.kubectl, "gozkd": g.program}[words[0]]
		if err := run(words[1:]); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(words, " "), err)
		}
		if g.release != nil && g.pods["restore"] == nil {
			if err := g.apply(kubernetes); err != nil {
				return err
			}
		}
	}
	return g.values(kubernetes)
}

// flags takes flags out of the words of a command; known has those with a value as true.
func flags(words []string, known map[string]bool) (rest []string, values map[string][]string, err error) {
	values = make(map[string][]string)
	for i := 0; i < len(words); i++ {
		value, ok := known[words[i]]
		switch {
		case words[i] == "--":
			return append(rest, words[i:]...), values, nil
		case !strings.HasPrefix(words[i], "-"):
			rest = append(rest, words[i])
		case !ok || value && i+1 == len(words):
			return nil, nil, fmt.Errorf("there is no flag %s", words[i])
		case value:
			i++
			values[words[i-1]] = append(values[words[i-1]], words[i])
		default:
			values[words[i]] = nil
		}
	}
	return rest, values, nil
}

// helm checks helm install: the values are those of the chart, which renders with them.
func (g *guide) helm(words []string) error {
	words, given, err := flags(words, map[string]bool{"--set": true})
	if err != nil {
		return err
	}
	if len(words) != 3 || words[0] != "install" || words[1] != "zk" {
		return errors.New("the page installs the release zk with helm install")
	}
	if _, err := os.Stat(filepath.Join(g.root, words[2], "Chart.yaml")); err != nil {
		return err
	}
	values := make(map[string]any)
	for _, set := range given["--set"] {
		if err := strvals.ParseInto(set, values); err != nil {
			return err
		}
	}
	if _, err := check(g.chart, values, g.gozkd); err != nil {
		return err
	}
	if g.release, err = render(g.chart, values); err != nil {
		return err
	}
	pod := &g.release.set.Spec.Template.Spec
	for n := range *g.release.set.Spec.Replicas {
		g.pods[fmt.Sprintf("%s-%d", g.release.set.Name, g.release.set.Spec.Ordinals.Start+n)] = pod
	}
	g.image = pod.Containers[0].Image
	return nil
}

// apply decodes the pod of the page, and looks for what it refers to.
func (g *guide) apply(text string) error {
	found := manifest.FindStringSubmatch(text)
	if found == nil {
		return errors.New("the page has no pod")
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	pod := new(corev1.Pod)
	if _, _, err := decoder.Decode([]byte(found[1]), nil, pod); err != nil {
		return err
	}
	volumes := make(map[string]bool)
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && g.release.maps[v.ConfigMap.Name] == nil {
			return fmt.Errorf("volume %s: there is no ConfigMap %s", v.Name, v.ConfigMap.Name)
		}
		if v.PersistentVolumeClaim != nil && !slices.ContainsFunc(g.release.set.Spec.VolumeClaimTemplates, func(c corev1.PersistentVolumeClaim) bool {
			server, ok := strings.CutPrefix(v.PersistentVolumeClaim.ClaimName, c.Name+"-")
			return ok && g.pods[server] != nil
		}) {
			return fmt.Errorf("volume %s: no server has the claim %s", v.Name, v.PersistentVolumeClaim.ClaimName)
		}
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				return fmt.Errorf("container %s mounts %s, which does not exist", c.Name, m.Name)
			}
		}
	}
	c := pod.Spec.Containers[0]
	if c.Image != g.image {
		return fmt.Errorf("the image is %s, that of the servers is %s", c.Image, g.image)
	}
	g.pods[pod.Name] = &pod.Spec
	return g.inside(&pod.Spec, &c, c.Args)
}

// container returns the pod and the container that words name.
func (g *guide) container(pod string, named []string) (*corev1.PodSpec, *corev1.Container, error) {
	spec := g.pods[pod]
	if spec == nil {
		return nil, nil, fmt.Errorf("there is no pod %s", pod)
	}
	all := append(slices.Clone(spec.Containers), spec.InitContainers...)
	for i := range all {
		if len(named) == 0 || all[i].Name == named[0] {
			return spec, &all[i], nil
		}
	}
	return nil, nil, fmt.Errorf("the pod %s has no container %s", pod, named[0])
}

// mounted checks that a file of a container is on one of its volumes, and exists if that is a
// ConfigMap.
func (g *guide) mounted(spec *corev1.PodSpec, c *corev1.Container, file string) error {
	for _, m := range c.VolumeMounts {
		name, ok := strings.CutPrefix(file, m.MountPath+"/")
		if !ok {
			continue
		}
		for _, v := range spec.Volumes {
			if v.Name != m.Name || v.ConfigMap == nil {
				continue
			}
			if _, ok := g.release.maps[v.ConfigMap.Name].Data[name]; !ok {
				return fmt.Errorf("the ConfigMap %s has no %s", v.ConfigMap.Name, name)
			}
		}
		return nil
	}
	return fmt.Errorf("the container %s has no volume with %s", c.Name, file)
}

// inside checks the words of the program in a container.
func (g *guide) inside(spec *corev1.PodSpec, c *corev1.Container, words []string) error {
	for _, w := range words {
		if strings.HasPrefix(w, "/") {
			if err := g.mounted(spec, c, w); err != nil {
				return err
			}
		}
	}
	return g.program(words)
}

// program runs gozkd where there are none of the files and servers that its words name. It must not
// say that the words are wrong.
func (g *guide) program(words []string) error {
	at := strings.NewReplacer("http://127.0.0.1:8080", "http://127.0.0.1:1")
	for i := range words {
		words[i] = at.Replace(words[i])
	}
	cmd := exec.Command(g.gozkd, words...)
	out, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.ExitCode() != 1 {
		return fmt.Errorf("gozkd %s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return nil
}

// kubectl checks a command of kubectl.
func (g *guide) kubectl(words []string) error {
	command := words[0]
	known, ok := map[string]map[string]bool{
		"exec": {"-c": true}, "cp": {"-c": true}, "logs": {"-c": true, "-f": false}, "delete": {}, "port-forward": {},
	}[command]
	if !ok {
		return errors.New("this test does not know the command")
	}
	words, given, err := flags(words[1:], known)
	if err != nil || len(words) == 0 {
		return errors.Join(err, errors.New("it names nothing"))
	}
	switch command {
	case "exec":
		spec, c, err := g.container(words[0], given["-c"])
		switch {
		case err != nil:
			return err
		case len(words) < 3 || words[1] != "--":
			return errors.New("there is no command")
		case c.Image == g.image && words[2] != "/bin/gozkd": // which is all that the image has
			return fmt.Errorf("the image has no %s", words[2])
		case c.Image == g.image:
			return g.inside(spec, c, words[3:])
		case words[2] == "touch":
			g.touched = append(g.touched, words[3])
			if !strings.Contains(strings.Join(c.Command, " "), "[ -e "+words[3]+" ]") {
				return fmt.Errorf("the container waits for another file: %q", c.Command)
			}
			return g.mounted(spec, c, words[3])
		}
		return nil
	case "cp":
		pod, file, _ := strings.Cut(words[len(words)-1], ":")
		spec, c, err := g.container(pod, given["-c"])
		if err != nil || len(words) != 2 {
			return errors.Join(err, errors.New("it copies one file"))
		}
		return g.mounted(spec, c, file)
	case "port-forward":
		_, c, err := g.container(words[0], nil)
		if err != nil {
			return err
		}
		for _, p := range c.Ports {
			if len(words) == 2 && fmt.Sprint(p.ContainerPort) == words[1] {
				return nil
			}
		}
		return fmt.Errorf("the pod has no port %s", words[1:])
	case "delete":
		if len(words) != 2 || words[0] != "pod" {
			return errors.New("it deletes one pod")
		}
		words = words[1:]
	}
	_, _, err = g.container(words[0], given["-c"])
	return err
}

// values checks words in the text that are values of the chart, with and without a setting.
func (g *guide) values(text string) error {
	for _, m := range helmTest.FindAllStringSubmatch(text, -1) {
		if known := m[1] == "test zk" && g.release.test != nil || m[1] == "upgrade"; !known {
			return fmt.Errorf("there is no helm %s", m[1])
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		first, _, _ := strings.Cut(m[1], ".")
		if _, ours := g.chart.Values[first]; !ours {
			continue
		}
		parent, value := g.chart.Values, any(nil)
		for name := range strings.SplitSeq(m[1], ".") {
			var ok bool
			if value, ok = parent[name]; !ok {
				return fmt.Errorf("the chart has no value %s", m[1])
			}
			parent, _ = value.(map[string]any)
		}
		if m[2] == "" {
			continue
		}
		set := make(map[string]any)
		if err := strvals.ParseInto(m[1]+"="+m[2], set); err != nil {
			return err
		}
		if first == "tls" {
			set["tls"].(map[string]any)["secretName"] = "t"
		}
		if _, err := render(g.chart, set); err != nil {
			return fmt.Errorf("%s: %w", m[0], err)
		}
	}
	return nil
}
