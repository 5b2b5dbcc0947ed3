package chart

import (
	"context"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
)

// rounds upgrades a release step by step, as docs/guide/container.md says, and by steps that leave
// a round out, which must be refused.
func rounds(c *chart.Chart) error {
	type values = map[string]any
	secret := values{"secretName": "s"}
	off, on := values{"secretName": "t"}, values{"secretName": "t", "quorum": true}
	both := func(quorum any) values { return values{"portUnification": true, "sslQuorum": quorum} }
	prefer := values{"gozkd.peer.secretMode": "prefer"}
	for name, step := range map[string]struct {
		before, after values
		refused       string
	}{
		"secret on in one round":   {nil, values{"peerSecret": secret}, "two rounds"},
		"secret off in one round":  {values{"peerSecret": secret}, nil, "two rounds"},
		"secret on, 1":             {nil, values{"peerSecret": secret, "config": prefer}, ""},
		"secret on, 2":             {values{"peerSecret": secret, "config": prefer}, values{"peerSecret": secret}, ""},
		"secret off, 1":            {values{"peerSecret": secret}, values{"peerSecret": secret, "config": prefer}, ""},
		"secret off, 2":            {values{"peerSecret": secret, "config": prefer}, nil, ""},
		"a lone server":            {values{"replicas": 1}, values{"replicas": 1, "peerSecret": secret, "tls": on}, ""},
		"TLS on in one round":      {values{"tls": off}, values{"tls": on}, "three rounds"},
		"TLS on in two rounds":     {values{"tls": on, "config": both(false)}, values{"tls": on}, "three rounds"},
		"TLS on without the first": {values{"tls": off}, values{"tls": on, "config": both(true)}, "three rounds"},
		"TLS on, 1":                {values{"tls": off}, values{"tls": on, "config": both(false)}, ""},
		"TLS on, 2":                {values{"tls": on, "config": both(false)}, values{"tls": on, "config": both(true)}, ""},
		"TLS on, 3":                {values{"tls": on, "config": both(true)}, values{"tls": on}, ""},
		"TLS off in one round":     {values{"tls": on}, values{"tls": off}, "three rounds"},
		"TLS off, 1":               {values{"tls": on}, values{"tls": on, "config": both(true)}, ""},
		"TLS off, 2":               {values{"tls": on, "config": both(true)}, values{"tls": on, "config": both(false)}, ""},
		"TLS off, 3":               {values{"tls": on, "config": both(false)}, values{"tls": off}, ""},
	} {
		before, err := render(c, step.before)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		release := chartutil.ReleaseOptions{Name: "zk", Namespace: "prod", Revision: 2, IsUpgrade: true}
		all, err := chartutil.ToRenderValues(c, step.after, release, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		_, err = engine.RenderWithClientProvider(c, all, running{config: before.maps["zk-gozkd"]})
		if (err != nil) != (step.refused != "") || err != nil && !strings.Contains(err.Error(), step.refused) {
			return fmt.Errorf("%s: %v, want %q", name, err, step.refused)
		}
	}
	return nil
}

// running is a cluster whose only object is a ConfigMap.
type running struct {
	dynamic.NamespaceableResourceInterface
	config *corev1.ConfigMap
}

func (r running) GetClientFor(string, string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return r, true, nil
}

func (r running) Namespace(string) dynamic.ResourceInterface { return r }

func (r running) Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.config)
	return &unstructured.Unstructured{Object: object}, err
}
