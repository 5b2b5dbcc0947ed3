package main

import (
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// webOptions translates the configuration.
func webOptions(c config.Config) (o web.Options, err error) {
	if o.Roles, err = web.ParseRoles(c.WebRoles); err != nil {
		return o, fmt.Errorf("gozkd.web.roles: %w", err)
	}
	o.Anonymous = web.Read
	if c.WebWrites() {
		o.Anonymous = web.Write
	}
	o.Hosts, o.ProxyHeader, o.Proxies, o.MaxBody = c.WebHosts, c.WebProxyHeader, c.WebProxies(), int64(c.JuteMaxBuffer)
	return o, nil
}

// webHandler returns the handler of REST and the explorer, or nil if they are not served.
func webHandler(c config.Config, s *server.Server, log hclog.Logger) *web.Handler {
	if !c.ServesWeb() {
		return nil
	}
	o, err := webOptions(c)
	if err != nil { // serveOne has checked that
		log.Error("not served: REST and the explorer", "error", err)
		return nil
	}
	o.Logger = log.Named("web")
	return web.New(s, o)
}

// checkWeb returns what is wrong with the configuration of REST and the explorer.
func checkWeb(c config.Config) error {
	_, err := webOptions(c)
	return err
}
