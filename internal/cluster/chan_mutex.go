package cluster

// chanMutex is a mutex for operations that may take long. Goroutines wait for it on a channel, so
// time can pass in a synctest bubble meanwhile; a sync.Mutex would block it.
type chanMutex chan struct{}

func newChanMutex() chanMutex { return make(chanMutex, 1) }

func (b chanMutex) lock()   { b <- struct{}{} }
func (b chanMutex) unlock() { <-b }
