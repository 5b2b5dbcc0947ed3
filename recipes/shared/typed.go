package shared

import (
	"encoding/json"
	"fmt"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
)

// Model says how values of type T are stored, and which are allowed: Curator's ModelSpec with its
// serializer and Schema.
//
//	Encode   returns the data of a value, in a new slice
//	Decode   returns the value of data, and may keep the slice
//	Check    returns why value must not be at path; a nil Check allows everything
type Model[T any] struct {
	Encode func(value T) ([]byte, error)
	Decode func(data []byte) (T, error)
	Check  func(path string, value T) error
}

// JSON returns a Model that stores JSON and allows everything. A znode without data has the zero
// value. Fields that T does not have are ignored, so the next change removes them.
func JSON[T any]() Model[T] {
	return Model[T]{
		Encode: func(value T) ([]byte, error) { return json.Marshal(value) },
		Decode: func(data []byte) (value T, err error) {
			if len(data) > 0 {
				err = json.Unmarshal(data, &value)
			}
			return value, err
		},
	}
}

// Read returns the value in the data of a znode that was read elsewhere, for example by package
// cache. The result can be compared and replaced with Typed.CompareAndSet. If the data cannot be
// decoded or fail the Check, the error is recipes.ErrFormat.
func (m Model[T]) Read(path string, data []byte, stat *proto.Stat) (Versioned[T], error) {
	return read(m.at(path), data, stat)
}

func (m Model[T]) at(path string) codec[T] {
	check := func(value T) error {
		if m.Check == nil {
			return nil
		}
		return m.Check(path, value)
	}
	return codec[T]{
		encode: func(value T) ([]byte, error) {
			err := check(value)
			if err == nil {
				var data []byte
				if data, err = m.Encode(value); err == nil {
					return data, nil
				}
			}
			return nil, fmt.Errorf("shared: %w: value for %s: %w", recipes.ErrArgument, path, err)
		},
		decode: func(data []byte) (T, error) {
			value, err := m.Decode(data)
			if err == nil {
				err = check(value)
			}
			if err != nil {
				return value, fmt.Errorf("shared: %w: %s: %w", recipes.ErrFormat, path, err)
			}
			return value, nil
		},
	}
}

// Typed is a Value of type T: Curator's ModeledFramework for one path. A value that the Model does
// not allow is never written: the error is recipes.ErrArgument. Data that the Model does not allow
// are recipes.ErrFormat; Set replaces them. Curator checks a Schema only when it writes.
//
// Typed has no methods for the znode's children, its ACL and its deletion, and no cache of its own:
// Next and Changes watch the value, and Model.Read reads the znodes of package cache.
type Typed[T any] struct{ *atomicValue[T] }

// NewTyped returns the value at path.
func NewTyped[T any](c *recipes.Client, path string, model Model[T], opts ...Option) *Typed[T] {
	return &Typed[T]{newAtomicValue(c, path, model.at(path), opts)}
}
