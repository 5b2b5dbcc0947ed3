package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

func Example() {
	ctx := context.Background()
	s, err := server.New(server.Config{InProcess: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := s.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()

	c, err := client.Connect(ctx, client.Config{
		Servers: []string{s.ConnectString()},
		Dial:    func(ctx context.Context, _ string) (net.Conn, error) { return s.Dial(ctx) }, // the default is TCP
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()
	path, _, err := c.Create(ctx, "/greeting", []byte("hello"), client.CreateOptions{})
	fmt.Println(path, err)
	data, stat, err := c.Get(ctx, "/greeting", false)
	fmt.Println(string(data), stat.Version, err)
	_, err = c.Set(ctx, "/greeting", nil, 7)
	fmt.Println(errors.Is(err, proto.ErrBadVersion), err)
	// Output:
	// /greeting <nil>
	// hello 0 <nil>
	// true client: setData /greeting: bad version (-103)
}
