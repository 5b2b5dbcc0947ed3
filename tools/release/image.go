package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"regexp"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// imageConfig is the part of a configuration that a container starts with, in the form of Docker
// and OCI.
type imageConfig struct {
	User         string
	ExposedPorts map[string]struct{}
	Env          []string
	Entrypoint   []string
	Cmd          []string
	Volumes      map[string]struct{}
	Labels       map[string]string
	StopSignal   string
	Healthcheck  healthcheck
}

type healthcheck struct {
	Test                           []string
	Interval, Timeout, StartPeriod time.Duration
}

var scripts = regexp.MustCompile(`(?m)for script in ([^;]+);`)

// readDockerfile returns what the last stage of a Dockerfile says, and the names of the scripts
// that the program replaces.
func readDockerfile(text string) (c imageConfig, replaced []string) {
	if m := scripts.FindStringSubmatch(text); m != nil {
		replaced = strings.Fields(m[1])
	}
	c.ExposedPorts, c.Volumes, c.Labels = make(map[string]struct{}), make(map[string]struct{}), make(map[string]string)
	last := text[strings.LastIndex(text, "\nFROM "):]
	for line := range strings.Lines(strings.ReplaceAll(last, "\\\n", " ")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "ENV":
			c.Env = strings.Fields(rest)
		case "USER":
			c.User = rest
		case "VOLUME":
			for _, v := range list(rest) {
				c.Volumes[v] = struct{}{}
			}
		case "EXPOSE":
			for _, port := range strings.Fields(rest) {
				c.ExposedPorts[port+"/tcp"] = struct{}{}
			}
		case "STOPSIGNAL":
			c.StopSignal = rest
		case "ENTRYPOINT":
			c.Entrypoint = list(rest)
		case "CMD":
			c.Cmd = list(rest)
		case "HEALTHCHECK":
			options, command, _ := strings.Cut(rest, " CMD ")
			c.Healthcheck.Test = append([]string{"CMD"}, list(command)...)
			for o := range strings.FieldsSeq(options) {
				name, value, _ := strings.Cut(o, "=")
				d := must.Get(time.ParseDuration(value))
				switch name {
				case "--interval":
					c.Healthcheck.Interval = d
				case "--timeout":
					c.Healthcheck.Timeout = d
				case "--start-period":
					c.Healthcheck.StartPeriod = d
				default:
					must.Failf("Dockerfile: HEALTHCHECK %s is not known to tools/release", name)
				}
			}
		case "", "#", "FROM", "COPY", "LABEL", "ARG":
		default:
			must.Failf("Dockerfile: %s in the last stage is not known to tools/release", word)
		}
	}
	return c, replaced
}

func list(text string) (words []string) {
	must.Do(json.Unmarshal([]byte(text), &words))
	return words
}

// authorities returns the certificates of Mozilla's list that are accepted without conditions.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			must.Do(pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.Bytes()
}

// image returns an archive with the image that deploy/Dockerfile describes. The archive has the
// layout of OCI, and the files that docker load looks for.
func (r *release) image(platform, arch string) []byte {
	config, replaced := readDockerfile(string(r.file("deploy/Dockerfile")))
	for name, value := range map[string]string{"title": "gozkd", "description": summary, "version": r.version, "revision": r.commit, "licenses": "Apache-2.0",
		"source": homepage, "documentation": homepage + "/blob/main/docs/guide/container.md", "created": r.time.UTC().Format(time.RFC3339)} {
		config.Labels["org.opencontainers.image."+name] = value
	}
	files := []entry{r.program(platform, "gozkd", "bin/gozkd"), {name: "etc/ssl/certs/ca-certificates.crt", data: authorities()}}
	for _, s := range replaced {
		files = append(files, entry{name: "bin/" + s + ".sh", link: "gozkd"})
	}
	for _, dir := range []string{"conf/", "data/", "datalog/", "tmp/"} {
		files = append(files, entry{name: dir, owner: 1000})
	}
	for _, name := range []string{"LICENSE", "LICENSES-OF-LIBRARIES"} {
		for _, t := range r.texts {
			if t.name == name {
				files = append(files, entry{name: "licenses/" + name, data: t.data})
			}
		}
	}
	layer := tarOf(directories(files), r.time)
	var blobs []entry
	add := func(media string, data []byte) map[string]any {
		sum := fmt.Sprintf("%x", sha256.Sum256(data))
		blobs = append(blobs, entry{name: "blobs/sha256/" + sum, data: data})
		return map[string]any{"mediaType": "application/vnd.oci.image." + media, "digest": "sha256:" + sum, "size": len(data)}
	}
	text := func(v any) []byte { return must.Get(json.Marshal(v)) }
	packed := add("layer.v1.tar+gzip", gzipOf(layer))
	configured := add("config.v1+json", text(map[string]any{
		"created": r.time.UTC(), "architecture": arch, "os": "linux", "config": config,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
		"history": []any{map[string]any{"created": r.time.UTC(), "created_by": "gozkd " + r.version}},
	}))
	tag := "gozkd:" + r.version
	manifest := add("manifest.v1+json", text(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": configured, "layers": []any{packed}, "annotations": config.Labels}))
	manifest["platform"] = map[string]string{"os": "linux", "architecture": arch}
	manifest["annotations"] = map[string]string{"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "docker.io/library/" + tag}
	return tarOf(append([]entry{
		{name: "oci-layout", data: text(map[string]string{"imageLayoutVersion": "1.0.0"})},
		{name: "index.json", data: text(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{manifest}})},
		{name: "manifest.json", data: text([]any{map[string]any{"Config": blobs[1].name, "RepoTags": []string{tag}, "Layers": []string{blobs[0].name}}})},
	}, blobs...), r.time)
}
