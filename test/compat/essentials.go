package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/gozk"
)

// runEssentials runs the tests of our recipes that any server must pass.
func runEssentials(ctx context.Context, root, addr string) (cases.Report, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-run", "^TestEssentials", "./recipes/...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOZKD_RECIPES_SERVERS="+addr)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	runErr := cmd.Run()
	report := cases.Report{Version: gozk.Version(), Log: errOut.String()}
	output := make(map[string]string)
	for d := json.NewDecoder(&out); d.More(); {
		var e struct{ Action, Package, Test, Output string }
		if err := d.Decode(&e); err != nil {
			return report, errors.Join(fmt.Errorf("read what go test says: %w", err), runErr)
		}
		_, pkg, _ := strings.Cut(e.Package, "/recipes")
		name := "recipes" + pkg + "." + e.Test
		switch {
		case e.Test == "" && e.Action == "fail":
			report.Log += "FAIL " + e.Package + "\n"
		case e.Test == "":
		case e.Action == "output":
			output[name] += e.Output
		case e.Action == "pass":
			report.Results = append(report.Results, cases.Result{Name: name})
		case e.Action == "fail", e.Action == "skip": // nothing may be skipped on a real server
			report.Results = append(report.Results, cases.Result{Name: name, Err: fmt.Errorf("%s: %s", e.Action, output[name])})
		}
	}
	if runErr != nil && report.OK() { // a package that does not build, or a leak after its tests
		return report, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), runErr)
	}
	return report, nil
}
