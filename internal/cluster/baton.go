package cluster

// baton is a mutex for what may take long. Who waits for it waits for a channel: so time passes meanwhile in a bubble, which a
// sync.Mutex would keep it from.
type baton chan struct{}

func newBaton() baton { return make(baton, 1) }

func (b baton) lock()   { b <- struct{}{} }
func (b baton) unlock() { <-b }
