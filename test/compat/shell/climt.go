package shell

import (
	"context"
	_ "embed" // climt.txt

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
)

//go:embed climt.txt
var cliMTText string

// CliMT runs the C client's example shell through its script on the server at addr.
func CliMT(ctx context.Context, addr string) (cases.Report, error) {
	path, version := install.CShell(ctx)
	s := must.Get(readScript("climt", cliMTText, false))
	results, log, err := s.run(ctx, []string{path, "-h", addr})
	return cases.Report{Version: version, Results: results, Log: log}, err
}
