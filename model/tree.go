package model

import (
	"bytes"
	"encoding/json"
)

// object is a JSON object that keeps the order of its keys, because models follow it.
type object struct {
	keys   []string
	values map[string]json.RawMessage
}

// readObject decodes an object; false if raw is none.
func readObject(raw json.RawMessage) (object, bool) {
	o := object{values: map[string]json.RawMessage{}}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return o, false
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return o, false
		}
		o.set(key.(string), value) // a key is a string, or Token has failed
	}
	_, err := d.Token()
	return o, err == nil
}

func (o *object) set(key string, value json.RawMessage) {
	if _, ok := o.values[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

// raw encodes the object, without keys that have no value.
func (o object) raw() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, key := range o.keys {
		if o.values[key] == nil {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(key) // a string always is JSON
		b.Write(name)
		b.WriteByte(':')
		b.Write(o.values[key])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// value returns the decoded value of a key; nil if it has none.
func (o object) value(key string) any {
	var v any
	_ = json.Unmarshal(o.values[key], &v) // invalid JSON counts as no value
	return v
}

func rawList(raw json.RawMessage) ([]json.RawMessage, bool) {
	var list []json.RawMessage
	return list, json.Unmarshal(raw, &list) == nil && list != nil
}

func rawOf(v any) json.RawMessage {
	b, _ := json.Marshal(v) // its parts were JSON before
	return b
}

// compact returns JSON without white space.
func compact(raw json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
