package server

import (
	"reflect"
	"testing"
)

// The lists of Reload contain fields of Config, each once.
func TestReload_Fields(t *testing.T) {
	seen := make(map[string]bool)
	for _, name := range append(append([]string{}, reloads...), handedIn...) {
		if _, ok := reflect.TypeFor[Config]().FieldByName(name); !ok || seen[name] {
			t.Errorf("%s is no field, or there twice", name)
		}
		seen[name] = true
	}
}
