package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licensecheck"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// accepted are the licences that a linked module may have: they ask for their text and the names of
// the authors, which every artifact has. MPL-2.0 also asks for the source, to which the text leads.
var accepted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSD-0-Clause", "ISC", "MIT", "MIT-0", "CC0-1.0", "MPL-2.0"}

// licenceFile matches files that a program must come with.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// linked is a module that some program of the release links.
type linked struct {
	module, version string
	licences        []string // SPDX identifiers
	text            string   // of its files
}

// licences returns the modules of others that the programs link, by path, and Go's standard library
// as "std".
func (r *release) licences() map[string]*linked {
	dirs := map[string]string{"std": r.output(r.tree, "go", "env", "GOROOT")}
	all := map[string]*linked{"std": {module: "std"}}
	list := r.output(r.tree, "go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	for line := range strings.Lines(list) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		dirs[path] = dir
	}
	for _, p := range platforms {
		for _, program := range []string{"gozkd", "gozkd-testkit"} {
			info := must.Get(buildinfo.ReadFile(filepath.Join(r.programs(p), r.program(p, program, program).name)))
			for _, m := range info.Deps {
				if m.Path != root && !strings.HasPrefix(m.Path, root+"/") {
					all[m.Path] = &linked{module: m.Path, version: m.Version}
				}
			}
		}
	}
	for path, l := range all {
		l.read(dirs[path])
	}
	return all
}

// read reads the licence files of a module.
func (l *linked) read(dir string) {
	for _, f := range must.Get(os.ReadDir(dir)) {
		if f.IsDir() || !licenceFile.MatchString(f.Name()) {
			continue
		}
		data := must.Get(os.ReadFile(filepath.Join(dir, f.Name())))
		line := strings.Repeat("=", 100)
		l.text += fmt.Sprintf("%s\n%s %s: %s\n%s\n\n%s\n", line, l.module, l.version, f.Name(), line, data)
		for _, m := range licensecheck.Scan(data).Match {
			if !slices.Contains(l.licences, m.ID) && !m.IsURL && m.ID != "GooglePatentsFile" { // PATENTS grants more
				l.licences = append(l.licences, m.ID)
			}
		}
	}
	slices.Sort(l.licences)
	for _, id := range l.licences {
		if !slices.Contains(accepted, id) {
			must.Failf("%s %s has the licence %s, which tools/release does not accept: link another module, or see what the licence asks for", l.module, l.version, id)
		}
	}
	if len(l.licences) == 0 {
		must.Failf("%s %s: no licence found in %s: link another module", l.module, l.version, dir)
	}
}

// thirdParty returns the file with the licences of all that is linked.
func thirdParty(all map[string]*linked) []byte {
	text := "The programs of gozkd contain the modules below, unchanged; std is Go's standard library. The source of\n" +
		"MODULE is at https://proxy.golang.org/MODULE/@v/VERSION.zip. gozkd's own licence is in LICENSE.\n\n"
	for _, path := range slices.Sorted(maps.Keys(all)) {
		text += all[path].text
	}
	return []byte(text)
}

// sbom returns a bill of materials in CycloneDX's format: what the go command recorded in a
// program.
func (r *release) sbom(info *debug.BuildInfo) []byte {
	bom := cyclonedx.NewBOM()
	component := func(kind cyclonedx.ComponentType, path, version string, licences []string) cyclonedx.Component {
		url := "pkg:golang/" + path + "@" + version
		choices := make(cyclonedx.Licenses, len(licences))
		for i, id := range licences {
			choices[i].License = &cyclonedx.License{ID: strings.Replace(id, "BSD-0-Clause", "0BSD", 1)}
		}
		return cyclonedx.Component{Type: kind, BOMRef: url, Name: path, Version: version, PackageURL: url, Licenses: &choices}
	}
	own := []string{"Apache-2.0"}
	program := component(cyclonedx.ComponentTypeApplication, info.Path, info.Main.Version, own)
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.UTC().Format("2006-01-02T15:04:05Z"), Component: &program}
	components := []cyclonedx.Component{component(cyclonedx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"), r.linked["std"].licences)}
	for _, m := range info.Deps {
		version, licences := info.Main.Version, own
		if l := r.linked[m.Path]; l != nil {
			version, licences = m.Version, l.licences
		}
		c := component(cyclonedx.ComponentTypeLibrary, m.Path, version, licences)
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(m.Sum, "h1:")); err == nil && len(sum) == sha256.Size {
			c.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
		}
		components = append(components, c)
	}
	bom.Components = &components
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &refs}}
	return append(must.Get(json.MarshalIndent(bom, "", " ")), '\n')
}
