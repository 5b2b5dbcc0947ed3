package recipes

// Shared returns the value that make returned on the first call with key, for all Clients of this
// connection and namespace. Recipes share znodes and requests this way, however often a recipe is
// constructed. The value is kept as long as the Client. key must have a type of the recipe's own,
// as with context keys. make may be called and its result discarded.
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
