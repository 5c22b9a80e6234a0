package codecs

import (
	"bytes"
	"encoding/json"
	"encoding/xml"

	iter "github.com/json-iterator/go"
	vmihailenco "github.com/vmihailenco/msgpack/v5"
	"google.golang.org/protobuf/encoding/protodelim"
	pbjson "google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// plain has the loops of codecs that go by reflection. Each is written out, so that the compiler knows the call.
func plain[T any](v *T, codec string) Form {
	f := Form{Value: v, Fresh: func() any { return new(T) }}
	switch codec {
	case "json":
		f.Marshal = func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				data, err = json.Marshal(v)
				total += len(data)
			}
			return data, total, err
		}
		f.Unmarshal = func(data []byte, n int) (any, error) {
			var back *T
			var err error
			for i := 0; i < n && err == nil; i++ {
				back = new(T)
				err = json.Unmarshal(data, back)
			}
			return back, err
		}
	case "json.stream":
		var buf bytes.Buffer
		f.Marshal = func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				buf.Reset()
				err = json.NewEncoder(&buf).Encode(v)
				total += buf.Len()
			}
			return buf.Bytes(), total, err
		}
		var reader bytes.Reader
		f.Unmarshal = func(data []byte, n int) (any, error) {
			var back *T
			var err error
			for i := 0; i < n && err == nil; i++ {
				reader.Reset(data)
				back = new(T)
				err = json.NewDecoder(&reader).Decode(back)
			}
			return back, err
		}
	case "json.gzip":
		c := gzippedJSON()
		f.Marshal = func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				data, err = c.Marshal(v)
				total += len(data)
			}
			return data, total, err
		}
		f.Unmarshal = func(data []byte, n int) (any, error) {
			var back *T
			var err error
			for i := 0; i < n && err == nil; i++ {
				back = new(T)
				err = c.Unmarshal(data, back)
			}
			return back, err
		}
	case "jsoniter":
		f.Marshal, f.Unmarshal = iterated(v, iter.ConfigCompatibleWithStandardLibrary)
	case "jsoniter.fastest":
		f.Marshal, f.Unmarshal = iterated(v, iter.ConfigFastest)
	case "json.v2":
		f.Marshal, f.Unmarshal = jsonV2Loops(v)
	case "goccy":
		f.Marshal, f.Unmarshal = goJSONLoops(v)
	case "xml":
		f.Marshal = func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				data, err = xml.Marshal(v)
				total += len(data)
			}
			return data, total, err
		}
		f.Unmarshal = func(data []byte, n int) (any, error) {
			var back *T
			var err error
			for i := 0; i < n && err == nil; i++ {
				back = new(T)
				err = xml.Unmarshal(data, back)
			}
			return back, err
		}
	case "msgpack":
		f.Marshal = func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				data, err = vmihailenco.Marshal(v)
				total += len(data)
			}
			return data, total, err
		}
		f.Unmarshal = func(data []byte, n int) (any, error) {
			var back *T
			var err error
			for i := 0; i < n && err == nil; i++ {
				back = new(T)
				err = vmihailenco.Unmarshal(data, back)
			}
			return back, err
		}
	}
	return f
}

func iterated[T any](v *T, api iter.API) (func(int) ([]byte, int, error), func([]byte, int) (any, error)) {
	return func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				data, err = api.Marshal(v)
				total += len(data)
			}
			return data, total, err
		}, func(data []byte, n int) (any, error) {
			var back *T
			var err error
			for i := 0; i < n && err == nil; i++ {
				back = new(T)
				err = api.Unmarshal(data, back)
			}
			return back, err
		}
}

// protobufs has those of protobuf.
func protobufs[T any, P interface {
	*T
	proto.Message
}](v P, codec string) Form {
	f := Form{Value: v, Fresh: func() any { return P(new(T)) }}
	f.Unmarshal = func(data []byte, n int) (any, error) {
		var back P
		var err error
		for i := 0; i < n && err == nil; i++ {
			back = new(T)
			err = proto.Unmarshal(data, back)
		}
		return back, err
	}
	switch codec {
	case "protobuf":
		f.Marshal = func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				data, err = proto.Marshal(v)
				total += len(data)
			}
			return data, total, err
		}
	case "protobuf.append":
		var buf []byte
		f.Marshal = func(n int) (data []byte, total int, err error) {
			data = buf
			for i := 0; i < n && err == nil; i++ {
				data, err = proto.MarshalOptions{}.MarshalAppend(data[:0], v)
				total += len(data)
			}
			buf = data
			return data, total, err
		}
	case "protobuf.delimited":
		var buf bytes.Buffer
		f.Marshal = func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				buf.Reset()
				_, err = protodelim.MarshalTo(&buf, v)
				total += buf.Len()
			}
			return buf.Bytes(), total, err
		}
		var reader bytes.Reader
		f.Unmarshal = func(data []byte, n int) (any, error) {
			var back P
			var err error
			for i := 0; i < n && err == nil; i++ {
				reader.Reset(data)
				back = new(T)
				err = protodelim.UnmarshalFrom(&reader, back)
			}
			return back, err
		}
	case "protojson":
		f.Marshal = func(n int) (data []byte, total int, err error) {
			for i := 0; i < n && err == nil; i++ {
				data, err = pbjson.Marshal(v)
				total += len(data)
			}
			return data, total, err
		}
		f.Unmarshal = func(data []byte, n int) (any, error) {
			var back P
			var err error
			for i := 0; i < n && err == nil; i++ {
				back = new(T)
				err = pbjson.Unmarshal(data, back)
			}
			return back, err
		}
	}
	return f
}
