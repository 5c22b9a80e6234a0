// Package xmlstd is encoding/xml as a codec, with the native types that carry the service in it. The types are copies
// of the plain structs, but for bytes; an element is named after its field, a root after its type.
//
// Characters that XML 1.0 lacks come back as U+FFFD: most control characters, U+FFFE, U+FFFF and bytes that are no
// UTF-8. encoding/xml writes carriage returns, line feeds and tabs as references, so that they come back.
package xmlstd

//go:generate go -C ../../tools run ./gentypes -tag xml -bytes Bytes ../codec/xmlstd Flex Pair

import (
	"bytes"
	"encoding/base64"
	"encoding/xml"
	"errors"

	"github.com/rpcbench/rpcbench/codec"
)

// Codec calls xml.Marshal, and xml.Unmarshal's decoder.
type Codec struct{}

func (Codec) ContentType() string           { return "application/xml; charset=utf-8" }
func (Codec) Marshal(v any) ([]byte, error) { return xml.Marshal(v) }

// Unmarshal refuses text and elements after the root, which xml.Unmarshal does not look at. Like that it takes a root
// of any name and skips what comes before it.
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

// Traits: what XML lacks, and omitempty takes a negative zero for a zero. What is no UTF-8 is refused when it is read.
func (Codec) Traits() codec.Traits {
	return codec.Traits{
		Library:     "encoding/xml",
		Lossy:       []string{codec.NegativeZero, codec.ControlCharacters, codec.NonCharacters},
		InvalidUTF8: codec.UTF8{Encoding: codec.Replaced, Decoding: codec.Rejected},
	}
}

// Bytes are in base64, as JSON has them: text alone can't carry every byte.
type Bytes []byte

func (b Bytes) MarshalText() ([]byte, error) { return base64.StdEncoding.AppendEncode(nil, b), nil }

func (b *Bytes) UnmarshalText(text []byte) (err error) {
	*b, err = base64.StdEncoding.AppendDecode(nil, text)
	return err
}
