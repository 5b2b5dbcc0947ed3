package recipes

// Shared returns what was made for key first, with make, on this Client and all that have the same connection and namespace: so that what a
// recipe keeps on the servers, or asks of them for several callers together, is there once, however often it is constructed. It is kept as
// long as the Client. key is of a type of the recipe's own, as with contexts. make may be called and not used.
func (c *Client) Shared(key any, make func() any) any {
	k := sharedKey{c.root, key}
	if v, ok := c.core.shared.Load(k); ok {
		return v
	}
	v, _ := c.core.shared.LoadOrStore(k, make())
	return v
}

type sharedKey struct {
	root string
	key  any
}
