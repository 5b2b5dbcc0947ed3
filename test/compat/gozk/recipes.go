package gozk

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/test/compat/cases"
)

func (s *script) recipes() []work {
	return []work{
		{"lock_excludes", s.lockExcludes},
		{"lock_data", lockData},
	}
}

// lockExcludes lets several sessions increment a number that only the lock protects.
func (s *script) lockExcludes(ctx context.Context, _ *zk.Conn, root string) error {
	const sessions, each = 4, 10
	inside, total := 0, 0
	errs := make(chan error, sessions) // one per session
	for range sessions {
		c, err := s.connect(ctx)
		if err != nil {
			return err
		}
		// Ends after its rounds or with its connection; the loop over errs waits for it.
		go func() {
			defer c.Close()
			errs <- func() error {
				lock := zk.NewLock(c, root+"/lock", open())
				for range each {
					if err := lock.Lock(); err != nil {
						return err
					}
					if inside++; inside != 1 {
						return fmt.Errorf("%d hold the lock", inside)
					}
					total++
					inside--
					if err := lock.Unlock(); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	var err error
	for range sessions {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return err
	}
	return cases.Expect("total", total, sessions*each)
}

func lockData(_ context.Context, c *zk.Conn, root string) error {
	lock := zk.NewLock(c, root+"/lock", open())
	if err := lock.LockWithData([]byte("who")); err != nil {
		return err
	}
	names, _, err := c.Children(root + "/lock")
	if err != nil {
		return err
	}
	if len(names) != 1 {
		return fmt.Errorf("got %q", names)
	}
	data, _, err := c.Get(root + "/lock/" + names[0])
	if err != nil {
		return err
	}
	return errors.Join(cases.Expect("data", string(data), "who"), want("second lock", lock.Lock(), zk.ErrDeadlock), lock.Unlock())
}
