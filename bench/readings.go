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

// contents is what is in a JSON file.
type contents struct {
	Machine    string       `json:"machine"`
	Conditions conditions   `json:"conditions"`
	How        string       `json:"how,omitempty"`
	Rows       []comparison `json:"rows,omitempty"`
	Readings   []reading    `json:"readings,omitempty"`
	Failed     []problem    `json:"failed,omitempty"`
}

// readings writes the figures as <name>.json where there is a folder.
func (o *output) readings(name string, list []reading) error {
	return o.json(name, contents{Readings: list})
}

// json writes c as <name>.json where there is a folder, with what is the same in all. It returns the first error of all writing so far.
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

// picture writes an SVG as <name>.svg where there is a folder.
func (o *output) picture(name string, svg []byte) error {
	if o.dir == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(o.dir, name+".svg"), svg, 0o644)
}

// once is the spread of what was read a single time.
func once(v float64) spread { return spread{v, v, v} }
