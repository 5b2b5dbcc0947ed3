// Package rawio reads and writes sockets that do not block. On Linux the runtime is not told about
// these calls: letting other goroutines run meanwhile would cost more than it saves, and the
// runtime's monitor would wake up for nothing.
package rawio
