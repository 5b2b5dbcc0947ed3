//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// reading is a figure of a server outside the tables of rows and shapes, from a single round or
// several.
type reading struct {
	Row    string `json:"row"`
	What   string `json:"what"` // the quantity with its unit, such as "wall ms"
	Server string `json:"server"`
	Value  spread `json:"value"`
}

// contents is the content of a JSON file.
type contents struct {
	Machine    string       `json:"machine"`
	Conditions conditions   `json:"conditions"`
	How        string       `json:"how,omitempty"`
	Rows       []comparison `json:"rows,omitempty"`
	Readings   []reading    `json:"readings,omitempty"`
	Failed     []problem    `json:"failed,omitempty"`
}

// readings writes the figures as <name>.json if there is a directory.
func (o *output) readings(name string, list []reading) error {
	return o.json(name, contents{Readings: list})
}

// json writes c as <name>.json if there is a directory, with machine, conditions and failures. It
// returns the first error of all writing so far.
func (o *output) json(name string, c contents) error {
	if o.dir == "" || o.failed != nil {
		return o.failed
	}
	c.Machine, c.Conditions, c.Failed = o.machine, o.conditions, o.problems
	b, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return err
	}
	o.wrote[name] = true
	return os.WriteFile(filepath.Join(o.dir, name+".json"), append(b, '\n'), 0o644)
}

// picture writes an SVG as <name>.svg if there is a directory.
func (o *output) picture(name string, svg []byte) error {
	if o.dir == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(o.dir, name+".svg"), svg, 0o644)
}

// once is the spread of a single reading.
func once(v float64) spread { return spread{v, v, v} }
