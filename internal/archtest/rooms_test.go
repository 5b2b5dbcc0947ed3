package archtest

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// roomsPicture is the picture of the packages and their imports. Update it with
// go test ./internal/archtest -run Rooms -update.
const roomsPicture = "docs/internals/rooms.svg"

// rooms draws packages of the library and of the programs as boxes, each above all packages that it
// imports, and as lines those imports that do not follow from others.
func rooms(srcs []source) []byte {
	imports := make(map[string][]string)
	for _, s := range srcs {
		if s.test || leftOut(s.pkg) {
			continue
		}
		to := imports[s.pkg]
		for _, imp := range s.imports() {
			if name, ours := strings.CutPrefix(imp.path, modulePath+"/"); ours && !slices.Contains(to, name) && !leftOut(name) {
				to = append(to, name)
			}
		}
		imports[s.pkg] = to
	}
	depth := make(map[string]int)
	var depthOf func(pkg string) int
	depthOf = func(pkg string) int {
		if d, known := depth[pkg]; known {
			return d
		}
		d := 0
		for _, to := range imports[pkg] {
			d = max(d, depthOf(to)+1)
		}
		depth[pkg] = d
		return d
	}
	var rows [][]string
	for pkg := range imports {
		for depthOf(pkg) >= len(rows) {
			rows = append(rows, nil)
		}
		rows[depth[pkg]] = append(rows[depth[pkg]], pkg)
	}
	const width, boxHeight, rowHeight, margin = 1500, 26, 84, 20
	type place struct{ x, y, w float64 }
	places := make(map[string]place)
	for d, row := range rows {
		slices.Sort(row)
		// A package stands near the middle of those that it imports, which are placed already.
		middle := func(pkg string) (x float64) {
			for _, to := range imports[pkg] {
				x += places[to].x / float64(len(imports[pkg]))
			}
			return x
		}
		if d > 0 {
			slices.SortStableFunc(row, func(a, b string) int { return cmp.Compare(middle(a), middle(b)) })
		}
		cell := float64(width) / float64(len(row))
		for i, pkg := range row {
			stagger := float64(i%2) * 30
			w := float64(7*len(pkg) + 14)
			x := min(max(cell*(float64(i)+0.5), w/2+4), width-w/2-4)
			places[pkg] = place{x, float64(margin+(len(rows)-1-d)*rowHeight) + stagger, w}
		}
	}
	follows := func(from, to string) bool { // through another import
		var reaches func(pkg string) bool
		reaches = func(pkg string) bool { return pkg == to || slices.ContainsFunc(imports[pkg], reaches) }
		return slices.ContainsFunc(imports[from], func(other string) bool { return other != to && reaches(other) })
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="monospace" font-size="11">`+"\n", width, margin*2+len(rows)*rowHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	names := slices.Concat(rows...)
	for _, pkg := range names {
		for _, to := range imports[pkg] {
			if p, q := places[pkg], places[to]; !follows(pkg, to) {
				fmt.Fprintf(&b, `<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f" stroke="#9ab"/>`+"\n", p.x, p.y+boxHeight, q.x, q.y)
			}
		}
	}
	for _, pkg := range names {
		p := places[pkg]
		fmt.Fprintf(&b, `<rect x="%.0f" y="%.0f" width="%.0f" height="%d" rx="4" fill="%s" stroke="#456"/>`+"\n", p.x-p.w/2, p.y, p.w, boxHeight, colourOf(pkg))
		fmt.Fprintf(&b, `<text x="%.0f" y="%.0f" text-anchor="middle">%s</text>`+"\n", p.x, p.y+17, pkg)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// leftOut reports whether a package is not drawn: tests, examples, and the single recipes, which
// stand on package recipes.
func leftOut(pkg string) bool {
	return measures(pkg) || slices.ContainsFunc([]string{"examples/", "internal/archtest", "internal/testkit/", "recipes/"},
		func(prefix string) bool { return strings.HasPrefix(pkg, prefix) })
}

// colourOf distinguishes programs, the library, and what several packages share.
func colourOf(pkg string) string {
	switch {
	case strings.HasPrefix(pkg, "cmd/"):
		return "#fde3c8"
	case strings.HasPrefix(pkg, "internal/"):
		return "#e4e4e4"
	}
	return "#d5e8d4"
}

func TestRooms_PictureIsCurrent(t *testing.T) {
	name := filepath.Join(root, filepath.FromSlash(roomsPicture))
	want := rooms(load(t))
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s does not show the packages and imports as they are (%v); update it: go test ./internal/archtest -run Rooms -update", roomsPicture, err)
	}
}
