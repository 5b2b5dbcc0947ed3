package lock

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
)

// ErrMaximum means that the path of a kazoo semaphore says another maximum.
var ErrMaximum = errors.New("lock: semaphore has another maximum")

// NewKazooSemaphore returns the semaphore of a path in the layout of kazoo's Semaphore, which shares it; Curator and those of NewSemaphore
// don't. As in kazoo, who uses the path first writes the maximum to it, and acquiring with another one fails, with ErrMaximum.
func NewKazooSemaphore(c *recipes.Client, path string, maximum int, data []byte) *Semaphore {
	return &Semaphore{client: c, mutex: NewKazooMutex(c, path+"-"+kazooName, data), leases: path, fixed: maximum, data: data, kazoo: true}
}

// agree makes sure that the path of a kazoo semaphore says the same maximum. What is no number says nothing, as in kazoo.
func (s *Semaphore) checkKazooMaximum(ctx context.Context) error {
	if !s.kazoo || s.maximumChecked.Load() {
		return nil
	}
	_, err := s.client.Create(ctx, s.leases, []byte(strconv.Itoa(s.fixed)), recipes.CreateOptions{Parents: true})
	if errors.Is(err, zk.ErrNodeExists) {
		var data []byte
		data, _, err = s.client.Get(ctx, s.leases)
		if n, e := strconv.Atoi(string(data)); err == nil && e == nil && n != s.fixed {
			err = fmt.Errorf("%w: %s has %d, not %d", ErrMaximum, s.leases, n, s.fixed)
		}
	}
	if err == nil {
		s.maximumChecked.Store(true)
	}
	return err
}
