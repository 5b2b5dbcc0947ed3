//go:build !linux && !darwin

package server

import "runtime"

func fileDescriptors() (open, limit int64, ok bool) { return 0, 0, false }

func system() (name, release string) { return runtime.GOOS, "" }
