package client

import "github.com/gozkd/gozkd/proto"

// SetFeatures makes the Client take its present server for one that can do only this.
func SetFeatures(c *Client, f *proto.Features) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link.features = f
}
