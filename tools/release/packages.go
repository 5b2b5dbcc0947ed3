package main

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/google/rpmpack"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

const (
	summary  = "coordination server for ZooKeeper clients"
	homepage = "https://github.com/gozkd/gozkd"
)

// installed returns the files of a package, at the places that Debian and Fedora share.
func (r *release) installed(platform string) []entry {
	// A package owns /usr/bin, and leaves /usr/local to the administrator.
	unit := func(name string) entry {
		text := bytes.ReplaceAll(r.file("deploy/"+name), []byte("/usr/local/bin/"), []byte("/usr/bin/"))
		return entry{name: "usr/lib/systemd/system/" + name, data: text}
	}
	all := []entry{
		r.program(platform, "gozkd", "usr/bin/gozkd"),
		unit("gozkd.service"), unit("gozkd-verify.service"), unit("gozkd-verify.timer"),
		{name: "usr/lib/sysusers.d/gozkd.conf", data: r.file("deploy/package/sysusers.conf")},
		{name: "etc/gozkd/zoo.cfg", data: r.file("deploy/package/zoo.cfg"), config: true},
	}
	places := map[string]string{"LICENSE": "usr/share/doc/gozkd/copyright", "LICENSES-OF-LIBRARIES": "usr/share/doc/gozkd/LICENSES-OF-LIBRARIES",
		"CHANGELOG.md": "usr/share/doc/gozkd/CHANGELOG.md", "gozkd.1": "usr/share/man/man1/gozkd.1.gz",
		"completion/gozkd.bash": "usr/share/bash-completion/completions/gozkd", "completion/_gozkd": "usr/share/zsh/vendor-completions/_gozkd",
		"completion/gozkd.fish": "usr/share/fish/vendor_completions.d/gozkd.fish"}
	for _, e := range r.texts {
		if at := places[e.name]; at != "" {
			if path.Ext(at) == ".gz" {
				e.data = gzipOf(e.data)
			}
			e.name = at
			all = append(all, e)
		}
	}
	return all
}

// sorted returns the version in a form that packages sort: a candidate comes before its release.
func (r *release) sorted() string { return strings.Replace(r.version, "-", "~", 1) }

// deb returns a package for Debian and its descendants.
func (r *release) deb(installed []entry, arch string) []byte {
	var size int
	var kept strings.Builder
	data := make([]entry, len(installed))
	for i, e := range installed {
		size += len(e.data)
		if e.config {
			fmt.Fprintf(&kept, "/%s\n", e.name)
		}
		e.name = "./" + e.name
		data[i] = e
	}
	control := fmt.Sprintf("Package: gozkd\nVersion: %s\nArchitecture: %s\n"+
		"Maintainer: gozkd <release@gozkd.invalid>\nInstalled-Size: %d\nDepends: passwd\n"+
		"Section: net\nPriority: optional\nHomepage: %s\nDescription: %s\n One binary that speaks the ZooKeeper protocol, without a JVM.\n",
		r.sorted(), arch, size/1024, homepage, summary)
	about := tarOf([]entry{
		{name: "./control", data: []byte(control)}, {name: "./conffiles", data: []byte(kept.String())},
		{name: "./postinst", mode: 0o755, data: r.file("deploy/package/postinst")}, {name: "./prerm", mode: 0o755, data: r.file("deploy/package/prerm")},
	}, r.time)
	b := bytes.NewBufferString("!<arch>\n")
	for _, member := range []entry{
		{name: "debian-binary", data: []byte("2.0\n")},
		{name: "control.tar.gz", data: gzipOf(about)},
		{name: "data.tar.gz", data: gzipOf(tarOf(directories(data), r.time))},
	} {
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", member.name, r.time.Unix(), 0, 0, "100644", len(member.data))
		b.Write(member.data)
		if len(member.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// rpm returns a package for Fedora and its descendants.
func (r *release) rpm(installed []entry, arch string) []byte {
	p := must.Get(rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: "gozkd", Summary: summary, Description: summary, Version: r.sorted(), Release: "1", OS: "linux",
		Arch: map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch], URL: homepage, Licence: "Apache-2.0", Group: "System Environment/Daemons",
		BuildHost: "gozkd", BuildTime: r.time.UTC(), Compressor: "gzip",
	}))
	for _, e := range installed {
		f := rpmpack.RPMFile{Name: "/" + e.name, Body: e.data, Mode: 0o100000 | uint(e.header(r.time).Mode), Owner: "root", Group: "root", MTime: uint32(r.time.Unix())}
		if e.config {
			f.Type = rpmpack.ConfigFile | rpmpack.NoReplaceFile
		}
		p.AddFile(f)
	}
	p.AddPostin(string(r.file("deploy/package/postinst")))
	p.AddPreun(string(r.file("deploy/package/prerm")))
	var b bytes.Buffer
	must.Do(p.Write(&b))
	return b.Bytes()
}
