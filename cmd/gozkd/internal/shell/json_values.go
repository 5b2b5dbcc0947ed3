package shell

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// jsonTime is how JSON has times: in UTC, with milliseconds, as ZooKeeper counts them.
const jsonTime = "2006-01-02T15:04:05.000Z"

// jsonDate returns a time in Unix milliseconds as JSON has it.
func jsonDate(ms int64) string { return time.UnixMilli(ms).UTC().Format(jsonTime) }

// hex returns zxids and session ids as ZooKeeper prints them. As numbers some would be too large for JavaScript.
func hex(n int64) string { return "0x" + strconv.FormatUint(uint64(n), 16) }

// jsonData is a znode's data in an object, under one of two keys: "data" has a string or, where a znode has no data at all,
// null; "data_base64" has what is no UTF-8. It is to be embedded.
type jsonData struct {
	Data   json.RawMessage `json:"data,omitempty"`
	Base64 *string         `json:"data_base64,omitempty"`
}

func dataOf(data []byte) jsonData {
	if data == nil {
		return jsonData{Data: json.RawMessage("null")}
	}
	if !utf8.Valid(data) {
		return base64Of(data)
	}
	quoted, err := marshal(string(data))
	if err != nil {
		panic(err) // a string can be marshalled
	}
	return jsonData{Data: quoted}
}

func base64Of(data []byte) jsonData {
	text := base64.StdEncoding.EncodeToString(data)
	return jsonData{Base64: &text}
}

// MarshalJSON has data as base64 whenever it was asked for in a form that is not text.
func (r getResult) MarshalJSON() ([]byte, error) {
	data := dataOf(r.Data)
	if r.format != nil && r.Data != nil {
		data = base64Of(r.Data)
	}
	return marshal(struct {
		Path string `json:"path"`
		jsonData
		Stat *stat `json:"stat,omitempty"`
	}{r.Path, data, r.Stat})
}

// MarshalJSON names the fields as ZooKeeper's documentation does.
func (s *stat) MarshalJSON() ([]byte, error) {
	return marshal(struct {
		Czxid          string `json:"czxid"`
		Mzxid          string `json:"mzxid"`
		Pzxid          string `json:"pzxid"`
		Ctime          string `json:"ctime"`
		Mtime          string `json:"mtime"`
		Version        int32  `json:"version"`
		Cversion       int32  `json:"cversion"`
		Aversion       int32  `json:"aversion"`
		EphemeralOwner string `json:"ephemeral_owner"`
		DataLength     int32  `json:"data_length"`
		NumChildren    int32  `json:"num_children"`
	}{
		hex(int64(s.Czxid)), hex(int64(s.Mzxid)), hex(int64(s.Pzxid)), jsonDate(s.CtimeMs), jsonDate(s.MtimeMs),
		s.Version, s.Cversion, s.Aversion, hex(int64(s.EphemeralOwner)), s.DataLength, s.NumChildren,
	})
}

// jsonCommand is what help says of a command.
type jsonCommand struct {
	Name  string     `json:"name"`
	Args  string     `json:"args"`
	About string     `json:"about"`
	Flags []jsonFlag `json:"flags"`
}

type jsonFlag struct {
	Name  string `json:"name"` // with its dash
	Value bool   `json:"value"`
	About string `json:"about"`
}

// MarshalJSON makes a list of it, with flags for each.
func (r helpResult) MarshalJSON() ([]byte, error) {
	list := []jsonCommand{}
	for _, c := range r {
		j := jsonCommand{c.name, c.args, c.about, []jsonFlag{}}
		for _, f := range c.flags {
			j.Flags = append(j.Flags, jsonFlag{"-" + f.name, f.value, f.about})
		}
		list = append(list, j)
	}
	return marshal(list)
}
