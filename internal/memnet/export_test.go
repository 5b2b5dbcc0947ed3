package memnet

// Ends returns how many ends of connections the network holds.
func (n *Network) Ends() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}
