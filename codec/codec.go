// Package codec holds the small interface behind which each serialization library stands, one in each subfolder. An
// importer compiles only the library that it names. The HTTP stacks use these values, and BenchmarkCodec times them.
package codec

import "io"

// Codec encodes and decodes whole bodies. Decoding expects a pointer to a fresh value.
type Codec interface {
	ContentType() string
	Marshal(v any) ([]byte, error)
	Unmarshal(data []byte, v any) error
	Traits() Traits
}

// Streaming is a Codec that can also write to and read from a connection directly.
type Streaming interface {
	Codec
	Encode(w io.Writer, v any) error
	Decode(r io.Reader, v any) error
}

// Traits is what a codec declares about itself. The tests of the codecs check each.
type Traits struct {
	Library string // import path of the package or module that encodes and decodes, or that generates what does

	// Generated says that methods generated for each type do it. Else it is reflection, or what the library builds by it.
	Generated bool

	Lossy       []string // what does not come back bit-equal: NegativeZero and the constants below it
	InvalidUTF8 UTF8
}

// UTF8 says what becomes of invalid UTF-8 in a string: Rejected, Replaced or Kept.
type UTF8 struct{ Encoding, Decoding string }

// What becomes of invalid UTF-8.
const (
	Rejected = "rejected" // an error
	Replaced = "replaced" // by U+FFFD
	Kept     = "kept"     // the same bytes
)

// What a codec may lose. All other values come back bit-equal.
const (
	NegativeZero      = "negative zero"      // comes back as zero
	NaN               = "NaN"                // can't be encoded
	Infinities        = "infinities"         // can't be encoded
	FloatDigits       = "float digits"       // beyond the sixth
	LargestFloat      = "largest float32"    // can't be decoded
	ControlCharacters = "control characters" // in a string, but for tab, line feed and carriage return
	NonCharacters     = "non-characters"     // U+FFFE and U+FFFF in a string
)
