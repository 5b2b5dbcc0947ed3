package config

import (
	"net/netip"
	"strings"

	"github.com/gozkd/gozkd/internal/webrole"
)

// networks is a list of addresses and networks.
var networks = kind{
	allowed: "addresses or networks such as 10.0.0.0/8, separated by commas",
	parse: func(v string) (string, bool) {
		all := parseNetworks(v)
		return formatNetworks(all), len(all) > 0 && len(all) == len(splitList(v))
	},
}

var roles = checked("ROLE=SCHEME:ID, separated by semicolons", webrole.Parse)

var browserHosts = listOf("host names without a scheme and a port, or .DOMAIN, separated by commas", func(name string) bool {
	return isHost(strings.TrimPrefix(name, "."))
})

// webOff is the value of gozkd.web that serves neither REST nor the explorer.
const webOff = "off"

func webKeys(c *Config) []key {
	return []key{
		row("gozkd.web", oneOf("read", "write", webOff), "read", &c.Web,
			"what callers on this machine may do by [REST and the explorer](../guide/rest.md#roles)"),
		row("gozkd.web.roles", roles, "", &c.WebRoles,
			"who may log in, and their [roles](../guide/rest.md#roles)").hidden(),
		row("gozkd.web.hosts", browserHosts, "", &c.WebHosts,
			"names that browsers may use for this server without HTTPS; `.example.org`: all names below"),
		row("gozkd.web.rate", integer(1, 1_000_000), "1000", &c.WebRate,
			"requests of a caller per second, twice as many at once; ten times as many on this machine. Beyond: 429"),
		row("gozkd.web.proxyHeader", likeHost("the name of a header"), "", &c.WebProxyHeader,
			"header in which a proxy of gozkd.web.proxies names the user (`sasl:USER`). The proxy must remove it from the requests that it gets, and add the caller's address to `X-Forwarded-For`, which ACLs of the scheme ip and the audit log use"),
		row("gozkd.web.proxies", networks, "", &c.WebProxies,
			"addresses of these proxies. The host names that a proxy on this machine passes on without HTTPS must be in gozkd.web.hosts"),
	}
}

// ServesWeb reports whether REST and the explorer are served.
func (c Config) ServesWeb() bool { return c.AdminEnabled && c.Web != webOff }

// Roles returns the roles of callers that log in, by their identities.
func (c Config) Roles() map[string]webrole.Role {
	roles, _ := webrole.Parse(c.WebRoles) // the key's kind has checked them
	return roles
}

func parseNetworks(list string) (all []netip.Prefix) {
	for _, text := range splitList(list) {
		if !strings.Contains(text, "/") {
			if a, err := netip.ParseAddr(text); err == nil {
				all = append(all, netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()))
			}
		} else if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, p.Masked())
		}
	}
	return all
}

func formatNetworks(all []netip.Prefix) string {
	words := make([]string, len(all))
	for i, p := range all {
		words[i] = p.String()
		if p.IsSingleIP() {
			words[i] = p.Addr().String()
		}
	}
	return strings.Join(words, ",")
}
