package web

import (
	_ "embed"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

//go:embed testdata/unit.js
var unitJS string

// TestUnit runs the checks of pure functions in a page of the explorer.
func TestUnit(t *testing.T) {
	b := open(t, server.Config{}, web.Options{Anonymous: web.Read}).visit(t, "#/z/")
	script := strings.Replace(unitJS, "export async", "async", 1) + "\nreturn run(location.origin + '/ui/');"
	for _, failure := range ask[[]string](b, "(() => {"+script+"})()") {
		t.Error(failure)
	}
}
