package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// platforms are those that programs are made for, those of Linux with packages and an image.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// release is what is made of a commit.
type release struct {
	*user
	version string // without v
	commit  string
	time    time.Time // of the commit: no file of an artifact has another
	tree    string    // a clone with the tags of the release
	out     string
	texts   []entry // of every archive
	linked  map[string]*linked
}

// release makes all artifacts. They depend on the commit and the version only, not on directories,
// the clock or the machine.
func (u *user) release(dir, version, out string, kits bool) {
	if !semver.IsValid("v" + version) {
		must.Failf("%q is no semantic version; give one such as 0.1.0", version)
	}
	if changed := u.output(dir, "git", "status", "--porcelain", "--untracked-files=no"); changed != "" {
		must.Failf("a release is made of a commit, and these files have changes: commit them first:\n%s", changed)
	}
	r := &release{user: u, version: version, out: out, tree: filepath.Join(u.dir, "tree")}
	r.commit = u.output(dir, "git", "rev-parse", "HEAD")
	r.time = must.Get(time.Parse(time.RFC3339, u.output(dir, "git", "show", "-s", "--format=%cI", "HEAD")))
	r.checkout(dir)
	must.Do(os.RemoveAll(out))
	must.Do(os.MkdirAll(out, 0o755))
	if v := u.publish(r.tree, filepath.Join(out, "modules"), r.time); v != "v"+version {
		must.Failf("the modules require one another at %s, not v%s: run make version VERSION=%s, and commit", v, version, version)
	}
	r.build()
	r.texts = r.describe()
	for _, p := range platforms {
		r.pack(p)
	}
	r.chart()
	if kits {
		fmt.Println("packages of the test kits")
		must.Do(os.WriteFile(filepath.Join(r.dir, "bin", "LICENSES-OF-LIBRARIES"), thirdParty(r.linked), 0o644))
		u.output(dir, "go", "run", "./test/testkits", "-all", "-version", version, "-programs", filepath.Join(r.dir, "bin"),
			"-out", filepath.Join(out, "testkits"))
	}
	r.sums()
}

// checkout clones HEAD and gives it the tags of the release, so that the go command records the
// version in the programs as it will when the tags exist.
func (r *release) checkout(dir string) {
	r.output(r.dir, "git", "clone", "-q", "--no-checkout", dir, r.tree)
	r.output(r.tree, "git", "checkout", "-q", "--detach", r.commit)
	for _, sub := range released {
		tag := strings.TrimPrefix(sub+"/v"+r.version, "/")
		if is := r.output(r.tree, "git", "tag", "--list", tag); is == "" {
			r.output(r.tree, "git", "tag", tag)
		} else if at := r.output(r.tree, "git", "rev-parse", tag+"^{commit}"); at != r.commit {
			must.Failf("the tag %s is at commit %s, and HEAD is %s: check out the tag, or release the next version", tag, at, r.commit)
		}
	}
}

// programs returns the directory with the programs of a platform.
func (r *release) programs(platform string) string { return filepath.Join(r.dir, "bin", platform) }

// build builds the programs as .ci/run does, so that packages are compiled once: without HTTP/2,
// which no port and no client of gozkd speaks.
func (r *release) build() {
	for _, p := range platforms {
		goos, goarch, _ := strings.Cut(p, "/")
		u := *r.user
		u.env = append([]string{"CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOOS=" + goos, "GOARCH=" + goarch}, r.env...)
		into := r.programs(p) + string(filepath.Separator)
		must.Do(os.MkdirAll(into, 0o755))
		u.output(r.tree, "go", "build", "-buildvcs=true", "-tags=nethttpomithttp2", "-ldflags=-s -w", "-o", into, "./cmd/gozkd", "./cmd/gozkd-testkit")
	}
	host := r.output(r.dir, filepath.Join(r.programs(runtime.GOOS+"/"+runtime.GOARCH), "gozkd"), "--version")
	if want := fmt.Sprintf("gozkd %s (%s), ", r.version, r.commit[:12]); !strings.HasPrefix(host, want) {
		must.Failf("gozkd --version prints %q, want %q at the beginning", host, want)
	}
	fmt.Println(host)
}

// file returns a file of the tree.
func (r *release) file(name string) []byte {
	return must.Get(os.ReadFile(filepath.Join(r.tree, filepath.FromSlash(name))))
}

// program returns a program as an entry.
func (r *release) program(platform, name, at string) entry {
	if strings.HasPrefix(platform, "windows/") {
		name, at = name+".exe", at+".exe"
	}
	return entry{name: at, mode: 0o755, data: must.Get(os.ReadFile(filepath.Join(r.programs(platform), name)))}
}

// pack makes the artifacts of a platform.
func (r *release) pack(platform string) {
	goos, goarch, _ := strings.Cut(platform, "/")
	base := fmt.Sprintf("gozkd_%s_%s_%s", r.version, goos, goarch)
	all := append([]entry{r.program(platform, "gozkd", "gozkd"), r.program(platform, "gozkd-testkit", "gozkd-testkit")}, r.texts...)
	for i := range all {
		all[i].name = base + "/" + all[i].name
	}
	if goos == "windows" {
		r.write(base+".zip", zipOf(all, r.time))
	} else {
		r.write(base+".tar.gz", gzipOf(tarOf(all, r.time)))
	}
	info := must.Get(buildinfo.ReadFile(filepath.Join(r.programs(platform), r.program(platform, "gozkd", "gozkd").name)))
	r.write(base+".cdx.json", r.sbom(info))
	if goos == "linux" {
		installed := r.installed(platform)
		r.write(base+".deb", r.deb(installed, goarch))
		r.write(base+".rpm", r.rpm(installed, goarch))
		r.write(fmt.Sprintf("gozkd_%s_image_%s.tar", r.version, goarch), r.image(platform, goarch))
	}
}

func (r *release) write(name string, data []byte) {
	write(filepath.Join(r.out, filepath.FromSlash(name)), data)
	fmt.Printf("%s: %.1f MB\n", name, float64(len(data))/1e6)
}

// chart writes the Helm chart as `helm package` does.
func (r *release) chart() {
	const dir = "deploy/helm/gozkd"
	versions := fmt.Sprintf("\nversion: %s\nappVersion: %[1]s\n", r.version)
	if !strings.Contains(string(r.file(dir+"/Chart.yaml")), versions) {
		must.Failf("%s/Chart.yaml has not the version %s: run make version VERSION=%[2]s, and commit", dir, r.version)
	}
	var files []entry
	for _, name := range strings.Fields(r.output(r.tree, "git", "ls-files", dir)) {
		files = append(files, entry{name: "gozkd/" + strings.TrimPrefix(name, dir+"/"), data: r.file(name)})
	}
	r.write("gozkd-"+r.version+".tgz", gzipOf(tarOf(files, r.time)))
}

// sums writes SHA256SUMS, which sha256sum -c reads and which is signed.
func (r *release) sums() {
	var text strings.Builder
	must.Do(filepath.WalkDir(r.out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), filepath.ToSlash(must.Get(filepath.Rel(r.out, path))))
		return err
	}))
	r.write("SHA256SUMS", []byte(text.String()))
}
