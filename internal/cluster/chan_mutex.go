package cluster

// chanMutex is a mutex for what may take long. Who waits for it waits for a channel: so time passes meanwhile in a bubble, which a
// sync.Mutex would keep it from.
type chanMutex chan struct{}

func newChanMutex() chanMutex { return make(chanMutex, 1) }

func (b chanMutex) lock()   { b <- struct{}{} }
func (b chanMutex) unlock() { <-b }
