package chart

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
)

// cases are the values that the chart is rendered with.
var cases = map[string]map[string]any{
	"defaults":       {},
	"one server":     {"replicas": 1},
	"five servers":   {"replicas": 5},
	"founding":       {"foundUntil": "2026-11-23T12:00:00Z"},
	"log volume":     {"persistence": map[string]any{"logSize": "4Gi", "storageClass": "fast"}},
	"no persistence": {"persistence": map[string]any{"enabled": false, "logSize": "1Gi"}},
	"tls":            {"tls": map[string]any{"secretName": "gozkd-tls"}},
	"tls only":       {"tls": map[string]any{"secretName": "gozkd-tls", "only": true, "clientAuth": "need", "quorum": true}, "networkPolicy": map[string]any{"enabled": true}},
	"a private cluster": {
		"image":            map[string]any{"repository": "registry.example/zk", "digest": "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
		"imagePullSecrets": []any{map[string]any{"name": "registry"}}, "fullnameOverride": strings.Repeat("coordination-", 8),
		"serviceAccount": map[string]any{"create": true, "annotations": map[string]any{"a": "b"}}, "priorityClassName": "high",
		"podLabels": map[string]any{"team": "infra"}, "antiAffinity": "required", "minReadySeconds": 10,
		"updateStrategy": map[string]any{"type": "OnDelete"}, "persistence": map[string]any{"retention": map[string]any{"whenDeleted": "Delete"}},
		"secretConfig": map[string]any{"secretName": "keys"}, "extraEnv": []any{map[string]any{"name": "TZ", "value": "UTC"}},
		"extraVolumes":              []any{map[string]any{"name": "jaas", "secret": map[string]any{"secretName": "jaas"}}},
		"extraVolumeMounts":         []any{map[string]any{"name": "jaas", "mountPath": "/jaas"}},
		"topologySpreadConstraints": []any{map[string]any{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}},
	},
	"monitoring": {
		"metrics":       map[string]any{"podMonitor": map[string]any{"enabled": true, "labels": map[string]any{"release": "prometheus"}}, "rules": map[string]any{"enabled": true}},
		"networkPolicy": map[string]any{"enabled": true, "clients": []any{map[string]any{"podSelector": map[string]any{}}}, "monitoring": []any{map[string]any{"namespaceSelector": map[string]any{}}}},
	},
	"everything":      {"tls": map[string]any{"secretName": "gozkd-tls", "quorum": true}, "peerSecret": map[string]any{"secretName": "p"}, "config": map[string]any{"tickTime": 500, "maxClientCnxns": 0}, "nodeSelector": map[string]any{"a": "b"}, "tolerations": []any{map[string]any{"key": "k", "operator": "Exists"}}},
	"without metrics": {"metrics": map[string]any{"enabled": false}},
	"archive":         {"archive": map[string]any{"url": "s3://backups/zk", "secretName": "s3", "verify": map[string]any{"ensemble": "00000000000000ab"}}},
	// In a file of values Helm reads each number as a floating-point number.
	"values file":    {"config": map[string]any{"maxSessionTimeout": 3600000.0, "maxClientCnxns": 0.0, "connectionDropIncrease": 0.02, "quorumListenOnAllIPs": false, "jute.maxbuffer": "0x400000"}},
	"scaling":        {"replicas": 5, "scaling": map[string]any{"enabled": true}, "peerSecret": map[string]any{"secretName": "p"}},
	"little memory":  {"memory": "64Mi"},
	"much memory":    {"memory": "16Gi", "resources": map[string]any{"limits": map[string]any{"cpu": "2"}}, "config": map[string]any{"gozkd.dataLimitKB": "60%"}},
	"own memory":     {"memory": "", "resources": map[string]any{"limits": map[string]any{"memory": "3G"}}},
	"archive by key": {"config": map[string]any{"gozkd.archive.url": "s3://backups/zk?region=eu-west-1"}},
}

// refused are values that must not render, and what the error says.
var refused = map[string]map[string]any{
	"replica":                  {"replica": 5},
	"cpuLimit":                 {"archive": map[string]any{"cpuLimit": 1}},
	"tls.only needs":           {"tls": map[string]any{"only": true}},
	"scaling needs peerSecret": {"scaling": map[string]any{"enabled": true}},
	"scaling needs 2 founders": {"replicas": 1, "scaling": map[string]any{"enabled": true}},
	"got string, want integer": {"replicas": "three"},
	`memory is "1G"`:           {"memory": "1G"},
	`memory is "0Mi"`:          {"memory": "0Mi"},
	`memory is "1.5Gi"`:        {"memory": "1.5Gi"},
	"at least 48Mi":            {"memory": "12Mi"},
	`foundUntil is "2026-13`:   {"foundUntil": "2026-13-23T12:00:00Z"},
	`antiAffinity is "pref`:    {"antiAffinity": "prefered"},
	"at '/tls/clientAuth'":     {"tls": map[string]any{"secretName": "t", "clientAuth": "needed"}},
	"at '/image/pullPolicy'":   {"image": map[string]any{"pullPolicy": "always"}},
}

func TestMain(m *testing.M) { os.Exit(m.Run()) }

var (
	update = flag.Bool("update", false, "write the files that values.yaml makes")
	dir    = flag.String("chart", "../../deploy/helm/gozkd", "the directory of the chart")
	gozkd  = flag.String("gozkd", "../../bin/gozkd", "the program")
)

func TestChart(t *testing.T) {
	c, err := loader.Load(*dir)
	if err = errors.Join(err, compareGenerated(*dir, *update), monitoringv1.AddToScheme(scheme.Scheme)); err != nil {
		t.Fatal(err)
	}
	if err := rounds(c); err != nil {
		t.Error(err)
	}
	page, err := os.ReadFile("../../docs/guide/start/bitnami.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	if cases["bitnami.md"], err = chartutil.ReadValues([]byte(block)); err != nil {
		t.Fatal(err)
	}
	for name, values := range cases {
		objects, err := check(c, values, *gozkd)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s: %d objects", name, objects)
	}
	for says, values := range refused {
		if _, err := check(c, values, *gozkd); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: the error is %v, and must say %q", values, err, says)
		}
	}
}

func check(c *chart.Chart, values map[string]any, gozkd string) (objects int, err error) {
	r, err := render(c, values)
	if err != nil {
		return 0, err
	}
	return r.objects, errors.Join(r.references(), r.settings(values), r.memory(r.values), r.configuration(gozkd), r.verification(gozkd))
}

// render returns the objects of a release with values.
func render(c *chart.Chart, values map[string]any) (*rendered, error) {
	release := chartutil.ReleaseOptions{Name: "zk", Namespace: "prod", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(c, values, release, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, err
	}
	r := &rendered{values: all, maps: make(map[string]*corev1.ConfigMap), services: make(map[string]*corev1.Service)}
	for name, text := range files {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		for document := range strings.SplitSeq(text, "\n---\n") {
			if strings.TrimSpace(document) == "" {
				continue
			}
			if err := r.add(document); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, document)
			}
			r.objects++
		}
	}
	return r, nil
}

// rendered are the objects of a release.
type rendered struct {
	values   chartutil.Values
	objects  int
	roles    []string
	set      *appsv1.StatefulSet
	verify   *batchv1.CronJob
	budget   *policyv1.PodDisruptionBudget
	maps     map[string]*corev1.ConfigMap
	services map[string]*corev1.Service
	accounts []string
	test     *corev1.Pod
	policy   *networkingv1.NetworkPolicy
	monitor  *monitoringv1.PodMonitor
}

// add decodes an object. Unknown fields, fields that come twice, and wrong types are errors.
func (r *rendered) add(document string) error {
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	object, _, err := decoder.Decode([]byte(document), nil, nil)
	if runtime.IsStrictDecodingError(err) || err != nil {
		return err
	}
	switch o := object.(type) {
	case *appsv1.StatefulSet:
		r.set = o
	case *batchv1.CronJob:
		r.verify = o
	case *policyv1.PodDisruptionBudget:
		r.budget = o
	case *corev1.ConfigMap:
		r.maps[o.Name] = o
	case *corev1.Service:
		r.services[o.Name] = o
	case *corev1.ServiceAccount:
		r.accounts = append(r.accounts, o.Name)
	case *rbacv1.Role:
		r.roles = append(r.roles, o.Name)
	case *rbacv1.RoleBinding:
		if !slices.Contains(r.roles, o.RoleRef.Name) || !slices.Contains(r.accounts, o.Subjects[0].Name) || o.Subjects[0].Namespace != "prod" {
			return fmt.Errorf("the roles are %v and the accounts %v", r.roles, r.accounts)
		}
	case *corev1.Pod:
		r.test = o
	case *networkingv1.NetworkPolicy:
		r.policy = o
	case *monitoringv1.PodMonitor:
		r.monitor = o
	case *monitoringv1.PrometheusRule:
		if len(o.Spec.Groups) == 0 || len(o.Spec.Groups[0].Rules) == 0 {
			return errors.New("no rules")
		}
	default:
		return fmt.Errorf("unexpected kind %T", o)
	}
	return nil
}

// settings finds keys of the value config that the configuration has not, or with another value.
func (r *rendered) settings(values map[string]any) error {
	var text string
	for _, m := range r.maps {
		text += "\n" + m.Data["zoo.cfg"]
	}
	config, _ := values["config"].(map[string]any)
	for key, value := range config {
		want := fmt.Sprint(value)
		if f, ok := value.(float64); ok {
			want = strconv.FormatFloat(f, 'f', -1, 64)
		}
		if !strings.Contains(text+"\n", "\n"+key+"="+want+"\n") {
			return fmt.Errorf("%s=%s is not in%s", key, want, text)
		}
	}
	return nil
}

// memory checks that the container's limit, GOMEMLIMIT and the limit of the data follow from the
// value memory.
func (r *rendered) memory(all chartutil.Values) error {
	value, err := all.PathValue("Values.memory")
	if err != nil || value == "" {
		return err
	}
	want, err := resource.ParseQuantity(value.(string))
	if err != nil {
		return err
	}
	pod := r.set.Spec.Template.Spec
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if limit, request := c.Resources.Limits.Memory(), c.Resources.Requests.Memory(); !limit.Equal(want) || !request.Equal(want) {
			return fmt.Errorf("container %s: limit %v, request %v, want %v", c.Name, limit, request, want)
		}
	}
	var mib int64
	for _, e := range pod.Containers[0].Env {
		if e.Name == "GOMEMLIMIT" {
			_, err = fmt.Sscanf(e.Value, "%dMiB", &mib)
		}
	}
	// What the Go runtime does not count is a tenth, or 12 MiB if that is more.
	if limit := want.Value() >> 20; err != nil || mib != limit-max(limit/10, 12) {
		return fmt.Errorf("GOMEMLIMIT is %d MiB of %v: %v", mib, want, err)
	}
	for _, v := range pod.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		if text := r.maps[v.ConfigMap.Name].Data["zoo.cfg"]; strings.Count(text, "gozkd.dataLimitKB=") != 1 {
			return fmt.Errorf("no limit of the data in\n%s", text)
		}
	}
	return nil
}

// references finds names of objects that do not exist.
func (r *rendered) references() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if r.set == nil {
		return errors.New("there is no StatefulSet")
	}
	pod := r.set.Spec.Template
	selects := func(what string, selector map[string]string) {
		for key, value := range selector {
			if pod.Labels[key] != value {
				fail("%s selects %s=%s, pods have %q", what, key, value, pod.Labels[key])
			}
		}
	}
	selects("the StatefulSet", r.set.Spec.Selector.MatchLabels)
	if many := *r.set.Spec.Replicas > 1; many != (r.budget != nil) {
		fail("%d replicas, PodDisruptionBudget: %v", *r.set.Spec.Replicas, r.budget != nil)
	} else if many {
		selects("the PodDisruptionBudget", r.budget.Spec.Selector.MatchLabels)
	}
	if r.services[r.set.Spec.ServiceName] == nil {
		fail("serviceName %s does not exist", r.set.Spec.ServiceName)
	}
	if name := pod.Spec.ServiceAccountName; name != "" && !slices.Contains(r.accounts, name) {
		fail("service account %s does not exist", name)
	}
	// The controller labels pods with the name of their revision: this name, "-" and up to ten
	// characters.
	if n := len(r.set.Name) + 11; n > validation.LabelValueMaxLength {
		fail("a revision of %s is a label of %d characters", r.set.Name, n)
	}
	volumes := make(map[string]bool)
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && r.maps[v.ConfigMap.Name] == nil {
			fail("volume %s: there is no ConfigMap %s", v.Name, v.ConfigMap.Name)
		}
	}
	for _, c := range r.set.Spec.VolumeClaimTemplates {
		volumes[c.Name] = true
	}
	ports := make(map[string]bool)
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				fail("container %s mounts %s, which does not exist", c.Name, m.Name)
			}
		}
		for _, e := range c.Env {
			if from := e.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
				if m := r.maps[from.ConfigMapKeyRef.Name]; m == nil {
					fail("%s is from ConfigMap %s, which does not exist", e.Name, from.ConfigMapKeyRef.Name)
				} else if _, ok := m.Data[from.ConfigMapKeyRef.Key]; !ok {
					fail("%s is from key %s, which does not exist", e.Name, from.ConfigMapKeyRef.Key)
				}
			}
		}
		for _, probe := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
			if probe != nil && !ports[probe.HTTPGet.Port.StrVal] {
				fail("container %s: a probe asks at port %v, which does not exist", c.Name, probe.HTTPGet.Port)
			}
		}
	}
	for _, s := range r.services {
		selects("service "+s.Name, s.Spec.Selector)
		for _, p := range s.Spec.Ports {
			if !ports[p.TargetPort.StrVal] {
				fail("service %s leads to port %v, which does not exist", s.Name, p.TargetPort)
			}
		}
	}
	if p := r.policy; p != nil {
		selects("the NetworkPolicy", p.Spec.PodSelector.MatchLabels)
		for _, rule := range p.Spec.Ingress {
			for _, port := range rule.Ports {
				if !ports[port.Port.StrVal] {
					fail("the NetworkPolicy admits to port %v, which does not exist", port.Port)
				}
			}
		}
	}
	if m := r.monitor; m != nil {
		selects("the PodMonitor", m.Spec.Selector.MatchLabels)
		if port := m.Spec.PodMetricsEndpoints[0].Port; port == nil || !ports[*port] {
			fail("the PodMonitor asks at port %v, which does not exist", port)
		}
	}
	return errors.Join(errs...)
}

// verification checks the CronJob: present if there is an archive, it names the archive with flags
// that gozkd takes, and no service or budget selects its pods.
func (r *rendered) verification(gozkd string) error {
	var text string
	for _, m := range r.maps {
		text += m.Data["zoo.cfg"] + "\n"
	}
	_, url, archived := strings.Cut(text, "gozkd.archive.url=")
	if url, _, _ = strings.Cut(url, "\n"); archived != (r.verify != nil) {
		return fmt.Errorf("archive: %v, CronJob: %v", archived, r.verify != nil)
	}
	if r.verify == nil {
		return nil
	}
	pod := r.verify.Spec.JobTemplate.Spec.Template
	if name := r.set.Spec.Selector.MatchLabels["app.kubernetes.io/name"]; pod.Labels["app.kubernetes.io/name"] == name {
		return fmt.Errorf("pods of the CronJob look like servers: %v", pod.Labels)
	}
	c := pod.Spec.Containers[0]
	if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].Name != pod.Spec.Volumes[0].Name {
		return errors.New("the CronJob has no volume for its temporary files")
	}
	if last := c.Args[len(c.Args)-1]; last != url {
		return fmt.Errorf("the CronJob verifies %s, the archive is %s", last, url)
	}
	// In a directory that does not exist the command fails, with another status than for a wrong
	// flag.
	out, err := exec.Command(gozkd, append(c.Args[:len(c.Args)-1:len(c.Args)-1], "file:///nowhere/at/all")...).CombinedOutput()
	if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || failed.ExitCode() != 1 {
		return fmt.Errorf("%q: %v\n%s", c.Args, err, out)
	}
	return nil
}

// secrets makes the files that come from secrets in a cluster.
func secrets(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	self := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gozkd"}, NotAfter: time.Now().AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{"*.zk-gozkd-headless.prod.svc.cluster.local"}}
	certificate, err := x509.CreateCertificate(rand.Reader, self, self, key.Public(), key)
	if err != nil {
		return err
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	combined := append(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), ca...)
	for name, content := range map[string][]byte{"tls/tls-combined.pem": combined, "tls/ca.crt": ca, "peer/secret": []byte(strings.Repeat("secret", 10))} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// configuration lets gozkd check the configuration of each server, as its pod would start it.
func (r *rendered) configuration(gozkd string) error {
	dir, err := os.MkdirTemp("", "gozkd-chart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var text string
	for _, v := range r.set.Spec.Template.Spec.Volumes {
		if v.ConfigMap != nil {
			text = r.maps[v.ConfigMap.Name].Data["zoo.cfg"]
		}
	}
	if err := secrets(dir); err != nil {
		return err
	}
	// Paths of the container are replaced by a directory of this machine.
	var lines []string
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), "="); strings.HasPrefix(value, "/") {
			line = key + "=" + filepath.Join(dir, value) + "\n"
		}
		lines = append(lines, line)
	}
	file := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		return err
	}
	for id := int(r.set.Spec.Ordinals.Start); id < int(r.set.Spec.Ordinals.Start)+int(*r.set.Spec.Replicas); id++ {
		args := strings.NewReplacer("$(ZOO_MY_ID)", strconv.Itoa(id), "/conf/zoo.cfg", file).Replace(strings.Join(r.set.Spec.Template.Spec.Containers[0].Args, " "))
		cmd := exec.Command(gozkd, append([]string{"check-config"}, strings.Fields(args)[1:]...)...)
		cmd.Env = []string{"ZOO_MY_ID=" + strconv.Itoa(id)}
		var out, said strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &said
		err := cmd.Run()
		if err != nil || said.Len() > 0 {
			return fmt.Errorf("server %d: %v\n%s%s\n%s", id, err, said.String(), out.String(), text)
		}
		if name := fmt.Sprintf("%s-%d.%s.prod.svc.", r.set.Name, id, r.set.Spec.ServiceName); *r.set.Spec.Replicas > 1 && !strings.Contains(out.String(), fmt.Sprintf("\nserver.%d=%s", id, name)) {
			return fmt.Errorf("server %d is not %s in\n%s", id, name, text)
		}
	}
	return nil
}
