// Package examples has the complete examples of docs/guide/testing.md. They use nothing that a program outside this module could not.
package examples

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
