package faultsapi

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
)

// registry holds values by number, from 1. The zero value is empty. Safe for concurrent use.
type registry[T any] struct {
	mu     sync.Mutex
	last   int
	things map[int]T
}

// put stores the value that make returns for its number.
func (s *registry[T]) put(make func(id int) (T, error)) (id int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	thing, err := make(s.last + 1)
	if err != nil {
		return 0, err
	}
	if s.things == nil {
		s.things = map[int]T{}
	}
	s.last++
	s.things[s.last] = thing
	return s.last, nil
}

func (s *registry[T]) get(id int) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	thing, ok := s.things[id]
	return thing, ok
}

// take removes and returns a value.
func (s *registry[T]) take(id int) (T, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	thing, ok := s.things[id]
	delete(s.things, id)
	return thing, ok
}

// all returns the values in the order of their numbers.
func (s *registry[T]) all() (things []T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(s.things)) {
		things = append(things, s.things[id])
	}
	return things
}

// number returns the {id} in a request's path.
func (q *request) number() (int, error) {
	id, err := strconv.Atoi(q.PathValue("id"))
	if err != nil {
		return 0, invalid("%q is not a number", q.PathValue("id"))
	}
	return id, nil
}

// named returns the value whose number is in a request's path.
func named[T any](q *request, what string, get func(id int) (T, bool)) (thing T, err error) {
	id, err := q.number()
	if err != nil {
		return thing, err
	}
	return byID(id, what, get)
}

func byID[T any](id int, what string, get func(id int) (T, bool)) (T, error) {
	thing, ok := get(id)
	if !ok {
		return thing, &statusError{http.StatusNotFound, notFound(what, id)}
	}
	return thing, nil
}
