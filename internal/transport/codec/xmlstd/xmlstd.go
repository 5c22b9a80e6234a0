// Package xmlstd is a codec for XML by encoding/xml. Its types are copies of the plain structs with another type for
// bytes. An element is named after its field, the root after its type.
//
// Characters that XML 1.0 lacks come back as U+FFFD: most control characters, U+FFFE, U+FFFF and invalid UTF-8.
// encoding/xml writes carriage returns, line feeds and tabs as references, which come back as they were.
package xmlstd

//go:generate go -C ../../../tools run ./gentypes -tag xml -bytes Bytes ../transport/codec/xmlstd ../../user.go ../../types_gen.go

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
)

// Codec calls xml.Marshal and an xml.Decoder.
type Codec struct{}

func (Codec) ContentType() string           { return "application/xml; charset=utf-8" }
func (Codec) Marshal(v any) ([]byte, error) { return xml.Marshal(v) }

// Unmarshal fails if text or elements follow the root, which xml.Unmarshal ignores. Like xml.Unmarshal it accepts a
// root of any name, and skips what precedes it.
func (Codec) Unmarshal(data []byte, v any) error {
	d := xml.NewDecoder(bytes.NewReader(data))
	err := d.Decode(v)
	for err == nil {
		rest := bytes.TrimLeft(data[d.InputOffset():], " \t\r\n")
		if len(rest) == 0 {
			break
		}
		if !bytes.HasPrefix(rest, []byte("<!--")) && !bytes.HasPrefix(rest, []byte("<?")) {
			return errors.New("xmlstd: more data after the root element")
		}
		_, err = d.Token() // white space, a comment or an instruction
	}
	return err
}

// Traits declares the characters that XML lacks, and that omitempty leaves out a negative zero.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "encoding/xml",
		Lossy:       []rpcbench.Loss{rpcbench.LossNegativeZero, rpcbench.LossControlCharacters, rpcbench.LossNonCharacters},
		InvalidUTF8: rpcbench.UTF8Replaced,
	}
}

// Bytes are encoded in base64, as in JSON: XML's text can't carry every byte.
type Bytes []byte

func (b Bytes) MarshalText() ([]byte, error) { return base64.StdEncoding.AppendEncode(nil, b), nil }

func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = base64.StdEncoding.AppendDecode(nil, text)
	return err
}
