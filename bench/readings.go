//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// reading is one figure of one server, outside the tables of rows and shapes: what was read in several rounds, or once.
type reading struct {
	Row    string `json:"row"`
	What   string `json:"what"` // the quantity with its unit, such as "wall ms"
	Server string `json:"server"`
	Value  spread `json:"value"`
}

// readings writes the figures as <name>.json where there is a folder.
func (o *output) readings(name string, list []reading) error {
	return o.json(name, struct {
		Machine  string    `json:"machine"`
		Readings []reading `json:"readings"`
	}{o.machine, list})
}

// json writes v as <name>.json where there is a folder. It returns the first error of all writing so far.
func (o *output) json(name string, v any) error {
	if o.dir == "" || o.failed != nil {
		return o.failed
	}
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.dir, name+".json"), append(b, '\n'), 0o644)
}

// picture writes an SVG as <name>.svg where there is a folder.
func (o *output) picture(name string, svg []byte) error {
	if o.dir == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(o.dir, name+".svg"), svg, 0o644)
}

// once is the spread of what was read a single time.
func once(v float64) spread { return spread{v, v, v} }
