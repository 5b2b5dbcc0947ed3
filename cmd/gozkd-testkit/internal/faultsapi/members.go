package faultsapi

import (
	"context"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/cluster"
)

type memberAnswer struct {
	ID      int                 `json:"id"`
	Address string              `json:"address"`
	State   cluster.MemberState `json:"state"`
	Serving bool                `json:"serving"`
	Mode    string              `json:"mode"`
	Leader  int                 `json:"leader"`
	Zxid    string              `json:"zxid"`
}

func memberOf(m *cluster.Member) memberAnswer {
	a := memberAnswer{ID: m.ID(), Address: m.Address(), State: m.State(), Zxid: hex(0)}
	if s := m.Server(); s != nil && a.State == cluster.Running { // a paused server may hold locks
		st := s.Status()
		a.Serving, a.Mode, a.Leader, a.Zxid = st.Serving, st.Mode, st.Leader, hex(st.Zxid)
	}
	return a
}

func hex(n int64) string { return fmt.Sprintf("0x%x", uint64(n)) }

func (a *api) status(context.Context, *request) (any, error) {
	answer := struct {
		Members []memberAnswer `json:"members"`
		Leader  int            `json:"leader"`
	}{}
	for _, m := range a.cluster.Members() {
		answer.Members = append(answer.Members, memberOf(m))
	}
	if m := a.cluster.Leading(); m != nil {
		answer.Leader = m.ID()
	}
	return answer, nil
}

func (a *api) leader(ctx context.Context, _ *request) (any, error) {
	m, err := a.cluster.Leader(ctx)
	if err != nil {
		return nil, err
	}
	return memberOf(m), nil
}

// toMember makes a request handler of an operation on a member.
func toMember(do func(*cluster.Member, context.Context) error) func(*api, context.Context, *request) (any, error) {
	return func(a *api, ctx context.Context, q *request) (any, error) {
		id, err := q.number()
		if err != nil {
			return nil, err
		}
		m, err := a.cluster.Member(id)
		if err != nil {
			return nil, err
		}
		if err := do(m, ctx); err != nil {
			return nil, err
		}
		return memberOf(m), nil
	}
}

// toAll makes a request handler of an operation on all members.
func toAll(do func(*cluster.Cluster, context.Context) error) func(*api, context.Context, *request) (any, error) {
	return func(a *api, ctx context.Context, _ *request) (any, error) { return struct{}{}, do(a.cluster, ctx) }
}

// withoutContext adapts an operation that takes no context.
func withoutContext(do func(*cluster.Member) error) func(*cluster.Member, context.Context) error {
	return func(m *cluster.Member, _ context.Context) error { return do(m) }
}

func (a *api) partition(_ context.Context, q *request) (any, error) {
	var body struct {
		Groups [][]int `json:"groups"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if len(body.Groups) == 0 {
		return nil, invalid("there are no groups; expected is a body like %s. POST /heal takes a partition back", q.route.body)
	}
	return struct{}{}, a.cluster.Partition(body.Groups...)
}

func (a *api) heal(context.Context, *request) (any, error) {
	a.cluster.Heal()
	return struct{}{}, nil
}

type sessionAnswer struct {
	ID         string `json:"id"`
	TimeoutMs  int64  `json:"timeoutMs"`
	Connected  bool   `json:"connected"`
	Member     int    `json:"member"`
	Ephemerals int    `json:"ephemerals"`
}

func (a *api) sessions(ctx context.Context, _ *request) (any, error) {
	known, err := a.cluster.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	list := []sessionAnswer{}
	for _, s := range known {
		answer := sessionAnswer{ID: hex(s.ID), TimeoutMs: s.Timeout.Milliseconds(), Ephemerals: s.Ephemerals}
		if m, err := a.cluster.MemberOf(s.ID); err == nil {
			answer.Connected, answer.Member = true, m.ID()
		}
		list = append(list, answer)
	}
	return list, nil
}

func (a *api) expire(ctx context.Context, q *request) (any, error) {
	id, err := parseSession(q.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return struct{}{}, a.cluster.ExpireSession(ctx, id)
}

func (a *api) disconnect(_ context.Context, q *request) (any, error) {
	id, err := parseSession(q.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return struct{}{}, a.cluster.CloseConnection(id)
}

func (a *api) advance(ctx context.Context, q *request) (any, error) {
	var body struct {
		By *duration `json:"by"`
	}
	if err := q.decode(&body); err != nil {
		return nil, err
	}
	if body.By == nil {
		return nil, invalid("by is missing; expected is a body like %s", q.route.body)
	}
	return struct{}{}, a.cluster.Advance(ctx, time.Duration(*body.By))
}
