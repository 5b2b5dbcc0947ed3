package fair

// OfHost returns the number of callers of a host.
func (p *Places[V]) OfHost(host string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hosts[host]
}
