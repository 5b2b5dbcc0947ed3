package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// entry is a file of an archive, a package or an image.
type entry struct {
	name   string // slash-separated and relative; with a slash at the end a directory
	data   []byte
	mode   int64  // 0: 0644, of a directory 0755
	link   string // not empty: the target of a symbolic link
	owner  int    // the user and the group
	config bool   // a package keeps the user's changes to it
}

func (e *entry) header(at time.Time) *tar.Header {
	h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), Uid: e.owner, Gid: e.owner, ModTime: at.UTC(), Typeflag: tar.TypeReg}
	switch {
	case strings.HasSuffix(e.name, "/"):
		h.Typeflag = tar.TypeDir
	case e.link != "":
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
	}
	if h.Mode == 0 {
		h.Mode = 0o644
		if h.Typeflag != tar.TypeReg {
			h.Mode = 0o755
		}
	}
	return h
}

// tarOf returns a tar archive of entries.
func tarOf(entries []entry, at time.Time) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		must.Do(w.WriteHeader(e.header(at)))
		must.Get(w.Write(e.data))
	}
	must.Do(w.Close())
	return b.Bytes()
}

func gzipOf(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	must.Get(w.Write(data))
	must.Do(w.Close())
	return b.Bytes()
}

// zipOf returns a zip archive of files.
func zipOf(entries []entry, at time.Time) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at.UTC()}
		h.SetMode(e.header(at).FileInfo().Mode())
		must.Get(must.Get(w.CreateHeader(h)).Write(e.data))
	}
	must.Do(w.Close())
	return b.Bytes()
}

// directories returns entries, each after entries of the directories above it.
func directories(entries []entry) []entry {
	var all []entry
	seen := make(map[string]bool)
	for _, e := range entries {
		for i, c := range e.name {
			if dir := e.name[:i+1]; c == '/' && dir != e.name && !seen[dir] {
				seen[dir] = true
				all = append(all, entry{name: dir})
			}
		}
		if !seen[e.name] {
			seen[e.name] = true
			all = append(all, e)
		}
	}
	return all
}
