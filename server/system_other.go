//go:build !linux && !darwin

package server

import (
	"errors"
	"net"
	"runtime"
)

func fileDescriptors() (open, limit int64, ok bool) { return 0, 0, false }

func setBacklog(net.Listener, int) error { return errors.ErrUnsupported }

func system() (name, release string) { return runtime.GOOS, "" }
