package main

import (
	"context"

	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// client is a script of work for one client library.
type client struct {
	name string
	run  func(ctx context.Context, root, addr string) (cases.Report, error)
}

func (c client) flagName() string { return c.name }

var clients = []client{
	{"kazoo", runKazoo},
}

func runKazoo(ctx context.Context, root, addr string) (cases.Report, error) {
	python, err := install.Kazoo(ctx, root)
	if err != nil {
		return cases.Report{}, err
	}
	return script(ctx, python, root+"/test/compat/kazoo/compat.py", addr, server.SuperPassword)
}
