package cluster

// chanMutex is a mutex for operations that may take long. Goroutines wait for it on a channel, so
// that time can pass in a synctest bubble meanwhile; waiting for a sync.Mutex would stop the
// bubble's clock.
type chanMutex chan struct{}

func newChanMutex() chanMutex { return make(chanMutex, 1) }

func (b chanMutex) lock()   { b <- struct{}{} }
func (b chanMutex) unlock() { <-b }
