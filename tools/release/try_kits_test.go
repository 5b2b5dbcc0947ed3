package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// wheelTags are parts of the names of wheels.
var wheelTags = map[string]string{
	"linux/amd64": "manylinux*_x86_64", "linux/arm64": "manylinux*_aarch64", "darwin/amd64": "macosx*_x86_64",
	"darwin/arm64": "macosx*_arm64", "windows/amd64": "win_amd64", "windows/arm64": "win_arm64",
}

// tryKits checks the packages of the test kits for all platforms: each has the gozkd-testkit of the
// platform's archive, and says so in the way that its language verifies.
func (u *user) tryKits(out, version string) {
	kits := filepath.Join(out, "testkits")
	var library struct{ OptionalDependencies map[string]string }
	must.Do(json.Unmarshal(unpacked(filepath.Join(kits, "gozkd-testkit-"+version+".tgz"))["package/package.json"], &library))
	jar := unpacked(filepath.Join(kits, "gozkd-testkit-"+version+".jar"))
	if !bytes.Contains(jar["META-INF/NOTICE"], []byte("nanojson")) || !bytes.Contains(jar["META-INF/LICENSE"], []byte("Apache License")) {
		must.Failf("the library for Java does not have the licence of nanojson: %s", jar["META-INF/NOTICE"])
	}
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		node := strings.NewReplacer("windows", "win32", "amd64", "x64")
		system, cpu := node.Replace(goos), node.Replace(goarch)
		program, suffix := "gozkd-testkit", ".tar.gz"
		if goos == "windows" {
			program, suffix = "gozkd-testkit.exe", ".zip"
		}
		archive := fmt.Sprintf("gozkd_%s_%s_%s", version, goos, goarch)
		archived := unpacked(filepath.Join(out, archive+suffix))
		const maxProgram = 20_000_000 // bytes of gozkd on Linux: see "The size of the program" in releasing.md
		if n := len(archived[archive+"/gozkd"]); goos == "linux" && (n == 0 || n > maxProgram) {
			must.Failf("%s: gozkd has %d bytes, allowed are %d", archive, n, maxProgram)
		}
		want := archived[archive+"/"+program]
		sum := sha256.Sum256(want)
		for _, kit := range []struct{ file, dir, about, says, licences string }{
			{
				one(kits, "gozkd_testkit-"+version+"-py3-none-"+wheelTags[platform]+"*.whl"), "gozkd_testkit/",
				"gozkd_testkit-" + version + ".dist-info/RECORD",
				fmt.Sprintf("%s,sha256=%s,%d\n", program, base64.RawURLEncoding.EncodeToString(sum[:]), len(want)),
				"gozkd_testkit-" + version + ".dist-info/licenses/",
			},
			{
				one(kits, fmt.Sprintf("gozkd-testkit-%s-%s-%s.jar", version, goos, goarch)), "gozkd-testkit/" + goos + "-" + goarch + "/",
				"gozkd-testkit/" + goos + "-" + goarch + "/sha256", fmt.Sprintf("%x\n", sum), "META-INF/",
			},
			{
				one(kits, fmt.Sprintf("gozkd-testkit-%s-%s-%s.tgz", system, cpu, version)), "package/",
				"package/package.json", fmt.Sprintf("\"os\": [\n    %q\n  ],\n  \"cpu\": [\n    %q\n  ],", system, cpu), "package/",
			},
		} {
			files := unpacked(kit.file)
			if got := files[kit.dir+program]; len(got) == 0 || !bytes.Equal(got, want) {
				must.Failf("%s: %s differs from that of %s%s", kit.file, kit.dir+program, archive, suffix)
			}
			for _, name := range []string{"LICENSE", "LICENSES-OF-LIBRARIES"} {
				if !bytes.Equal(files[kit.licences+name], archived[archive+"/"+name]) || len(archived[archive+"/"+name]) == 0 {
					must.Failf("%s: %s differs from that of %s%s", kit.file, kit.licences+name, archive, suffix)
				}
			}
			if !bytes.Contains(files[kit.about], []byte(kit.says)) {
				must.Failf("%s: %s does not say %s:\n%s", kit.file, kit.about, kit.says, files[kit.about])
			}
		}
		if got := library.OptionalDependencies["@gozkd/testkit-"+system+"-"+cpu]; got != version {
			must.Failf("the package for npm asks for version %q of the program for %s", got, platform)
		}
	}
}

// unpacked returns the files of an archive by name. Programs must be executable.
func unpacked(file string) map[string][]byte {
	files := make(map[string][]byte)
	add := func(name string, info os.FileInfo, r io.Reader) {
		if files[name] = must.Get(io.ReadAll(r)); strings.HasSuffix(name, "gozkd-testkit") && info.Mode()&0o111 == 0 && !strings.HasSuffix(file, ".jar") {
			must.Failf("%s: %s is not executable", file, name)
		}
	}
	if strings.HasSuffix(file, "gz") {
		f := must.Get(os.Open(file))
		defer must.Finally(f.Close)
		r := tar.NewReader(must.Get(gzip.NewReader(f)))
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				return files
			}
			must.Do(err)
			add(h.Name, h.FileInfo(), r)
		}
	}
	z := must.Get(zip.OpenReader(file))
	defer must.Finally(z.Close)
	for _, f := range z.File {
		r := must.Get(f.Open())
		add(f.Name, f.FileInfo(), r)
		must.Do(r.Close())
	}
	return files
}
