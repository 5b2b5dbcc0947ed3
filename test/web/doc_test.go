// Package web uses the explorer as a person does, in headless Chromium: it clicks, types, and reads
// what is on the screen. `make web` runs it; without GOZKD_BROWSER, the path of Chromium, all tests
// are skipped.
//
// A test waits until something is on the page, never for a time. After each test, no exception, no
// refusal by the content security policy, and no request to another origin may have happened.
package web

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/test/web/browser"
)

const variable = "GOZKD_BROWSER"

// chromium is shared by all tests: each tab has cookies and storage of its own.
var chromium *browser.Browser

func TestMain(m *testing.M) {
	code, err := run(watchdog.Watch(m))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m watchdog.TestingM) (code int, err error) {
	program := os.Getenv(variable)
	if program == "" {
		return m.Run(), nil
	}
	if chromium, err = browser.Start(program); err != nil {
		return 1, err
	}
	defer func() {
		if e := chromium.Close(); err == nil {
			err = e
		}
	}()
	return m.Run(), nil
}

// needBrowser skips the test unless there is a browser.
func needBrowser(t *testing.T) context.Context {
	t.Helper()
	if chromium == nil {
		t.Skip("runs in make web, which sets " + variable)
	}
	return t.Context()
}
