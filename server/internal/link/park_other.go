//go:build !linux

package link

// parking does not exist on this system: each link has a goroutine.
type parking struct{}

func (*parking) add(*Link) bool { return false }
func (*parking) remove(*Link)   {}
func (*parking) end()           {}
