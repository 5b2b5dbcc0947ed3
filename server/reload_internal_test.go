package server

import (
	"reflect"
	"testing"
)

// The tags of Config say one of the two things that Reload knows.
func TestReload_Fields(t *testing.T) {
	config, known := reflect.TypeFor[Config](), map[reflect.StructTag]int{`reload:"live"`: 0, `reload:"handed in"`: 0, "": 0}
	for i := range config.NumField() {
		field := config.Field(i)
		if _, ok := known[field.Tag]; !ok || field.Tag != "" && !field.IsExported() {
			t.Errorf("%s has the tag %s", field.Name, field.Tag)
		}
		known[field.Tag]++
	}
	for tag, n := range known {
		if n == 0 {
			t.Errorf("no field has the tag %q", tag)
		}
	}
}
