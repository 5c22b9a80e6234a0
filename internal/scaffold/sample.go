package scaffold

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

const (
	largest = 2 << 20 // bytes of a sample, which some stacks refuse
	deepest = 100     // levels of a sample

	tooLarge = "every server is set to refuse such a body (rpcbench.MaxBody), since its own limit would else decide " +
		"between stacks: give less"
)

var extensions = []string{".json", ".jsonl", ".ndjson"}

// readSamples reads the JSON values of a file, or of those files of a folder, by their names: 2.json comes before
// 10.json.
func readSamples(name string) (all []sample, err error) {
	files := []string{name}
	if entries, err := os.ReadDir(name); err == nil {
		files = nil
		for _, entry := range entries {
			if !entry.IsDir() && slices.Contains(extensions, filepath.Ext(entry.Name())) {
				files = append(files, filepath.Join(name, entry.Name()))
			}
		}
		slices.SortFunc(files, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		data, before := decoded(data), len(all)
		var of *fs.PathError
		switch {
		case errors.As(err, &of):
			return nil, fmt.Errorf("%s: %w", file, of.Err)
		case !utf8.Valid(data):
			return nil, fmt.Errorf("%s: not UTF-8, which JSON has to be", file)
		}
		d := json.NewDecoder(bytes.NewReader(data))
		for {
			var v json.RawMessage
			err := d.Decode(&v)
			if errors.Is(err, io.EOF) {
				break
			}
			var syntax *json.SyntaxError
			begins := int(d.InputOffset()) - len(v)
			switch {
			case errors.As(err, &syntax):
				begins = int(syntax.Offset)
			case err != nil:
				begins = len(data)
			}
			at := fmt.Sprintf("%s:%d", file, 1+bytes.Count(data[:begins], []byte("\n")))
			switch {
			case err != nil:
				return nil, fmt.Errorf("%s: not valid JSON: %w", at, err)
			case len(v) >= largest:
				return nil, fmt.Errorf("%s: 2 MiB of JSON or more: %s", at, tooLarge)
			case depth(tree(v)) > deepest:
				return nil, fmt.Errorf("%s: nested deeper than %d levels", at, deepest)
			}
			all = append(all, sample{v, at})
		}
		if len(all) == before {
			return nil, fmt.Errorf("%s: no JSON value in it: {} is an empty message", file)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no file in it ends in %s", name, strings.Join(extensions, ", "))
	}
	return all, nil
}

// decoded is a file's text without the mark at its beginning, which Windows writes, and UTF-16 after one.
func decoded(data []byte) []byte {
	marks := map[string]binary.ByteOrder{"\xff\xfe": binary.LittleEndian, "\xfe\xff": binary.BigEndian}
	order := marks[string(data[:min(2, len(data))])]
	if order == nil || len(data)%2 != 0 {
		return bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	units := make([]uint16, len(data)/2-1)
	for i := range units {
		units[i] = order.Uint16(data[2+2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

func depth(v any) (deep int) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			deep = max(deep, depth(inner))
		}
		return deep + 1
	case []any:
		for _, inner := range v {
			deep = max(deep, depth(inner))
		}
		return deep + 1
	}
	return 0
}

// tree is JSON as Go has it, with numbers as they stand.
func tree(data []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	_ = d.Decode(&v) // which was read before
	return v
}

func compact(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // which was decoded
	return bytes.TrimSpace(out.Bytes())
}

// brief is a value as error messages show it.
func brief(v any) string {
	const shown = 40
	text := string(compact(v))
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "…"
	}
	return text
}

// read has protobuf's own JSON read a sample. The error has the line and the column in the sample's file.
func (s sample) read(d protoreflect.MessageDescriptor) (*dynamicpb.Message, error) {
	m := dynamicpb.NewMessage(d)
	err := protojson.Unmarshal(s.data, m)
	if err == nil {
		return m, nil
	}
	file, line := s.name, 1
	if i := strings.LastIndexByte(s.name, ':'); i >= 0 {
		_, _ = fmt.Sscan(s.name[i+1:], &line)
		file = s.name[:i]
	}
	err = protojson.Unmarshal(append(bytes.Repeat([]byte("\n"), line-1), s.data...), dynamicpb.NewMessage(d))
	said := strings.ReplaceAll(strings.ReplaceAll(err.Error(), "\u00a0", " "), prefix+".", "")
	if at := regexp.MustCompile(`\(line (\d+:\d+)\): (.*)`).FindStringSubmatch(said); at != nil {
		return nil, fmt.Errorf("%s:%s: %s", file, at[1], at[2])
	}
	return nil, fmt.Errorf("%s: %s", s.name, strings.TrimPrefix(said, "proto: "))
}

// form is how a field stands in the samples.
type form struct {
	key          string
	seen         int  // messages that have the key
	text, number bool // strings, and numbers
	null         bool
	odd          bool // a string that Go's own type would write in another way, or can't: NaN
	hex          bool // bytes that look like it
}

// scalar says whether a type of whole samples is no object of fields: a value of a plain type stands for it.
func scalar(m *protogen.Message) bool {
	is := known(m)
	return is != "" && is != "Empty"
}

// walker learns from samples how the fields of their messages stand in JSON.
type walker struct {
	forms    map[protoreflect.FullName]*form
	messages map[protoreflect.FullName]int // how many of each there are
	nulls    []null
	nan      bool     // there is one
	told     []string // a line for each path
}

// null is one of a google.protobuf.Value, for which it is a value.
type null struct {
	field  *protogen.Field
	object map[string]any
	at     string
}

// dropNulls leaves out the nulls of keys that some messages lack: plain structs can't tell the two apart.
func (w *walker) dropNulls() (told []string) {
	for _, n := range w.nulls {
		if w.always(n.field) {
			continue
		}
		key, length := w.form(n.field.Desc).key, len("\x02\x08\x00") // in protobuf, before which is the tag
		delete(n.object, key)
		line := fmt.Sprintf("%s: null is left out, as others leave the key out: %d bytes less of JSON, and %d of protobuf",
			n.at, len(`"":null,`)+len(key), protowire.SizeTag(n.field.Desc.Number())+length)
		if !slices.Contains(told, line) {
			told = append(told, line)
		}
	}
	return told
}

func newWalker() *walker {
	return &walker{forms: map[protoreflect.FullName]*form{}, messages: map[protoreflect.FullName]int{}}
}

// read walks samples of a type, and has protobuf read them.
func (w *walker) read(m *protogen.Message, at string, given []sample) (all []any, err error) {
	for _, s := range given {
		v, err := w.whole(m, tree(s.data), at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		switch _, err := s.read(m.Desc); {
		case err != nil && scalar(m):
			return nil, fmt.Errorf("%w: JSON has the value of a %s alone", err, original(m.Desc))
		case err != nil:
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// whole walks a sample, which has a message's own form in JSON, and returns it as plain structs read it.
func (w *walker) whole(m *protogen.Message, v any, at string) (any, error) {
	if !scalar(m) {
		return v, cmp.Or(wants(m, v, at), w.message(m, v, at))
	}
	f := w.form(m.Desc)
	v, err := w.value(f, m, protoreflect.MessageKind, v, at)
	return v, cmp.Or(err, w.judge(f, at))
}

// form returns that of a field, or of a type of whole samples. It is empty if no sample has it.
func (w *walker) form(of protoreflect.Descriptor) *form {
	name := of.FullName()
	if w.forms[name] == nil {
		w.forms[name] = new(form)
	}
	return w.forms[name]
}

// always says whether each message has the field, a null or a zero too.
func (w *walker) always(field *protogen.Field) bool {
	f := w.form(field.Desc)
	return f.seen > 0 && f.seen == w.messages[field.Parent.Desc.FullName()]
}

// keyed is the field of a message that a key of JSON names; nil is none.
func keyed(m *protogen.Message, key string) *protogen.Field {
	for _, name := range []func(*protogen.Field) string{
		func(f *protogen.Field) string { return f.Desc.JSONName() },
		func(f *protogen.Field) string { return f.Desc.TextName() },
	} {
		if i := slices.IndexFunc(m.Fields, func(f *protogen.Field) bool { return name(f) == key }); i >= 0 {
			return m.Fields[i]
		}
	}
	return nil
}

// wants refuses what is no object where JSON has one for a message. Protobuf's own JSON names neither field nor type of
// that.
func wants(m *protogen.Message, v any, at string) error {
	if _, is := v.(map[string]any); is || known(m) != "" {
		return nil
	}
	return fmt.Errorf("%s: %s is no %s, which is an object", at, brief(v), original(m.Desc))
}

// fits refuses what isn't of a field's form: a list, a map, or a single value.
func fits(field *protogen.Field, v any, at string) error {
	_, isList := v.([]any)
	_, isObject := v.(map[string]any)
	wanted := field.Desc.Kind().String()
	if field.Message != nil {
		wanted = original(field.Message.Desc)
	}
	switch {
	case field.Desc.IsMap() && !isObject:
		wanted = "map, which is an object"
	case field.Desc.IsList() && !isList:
		wanted = "repeated " + wanted + ", which is a list"
	case field.Message != nil, field.Desc.IsList(), !isList && !isObject:
		return nil
	}
	return fmt.Errorf("%s: %s is no %s", at, brief(v), wanted)
}

// message walks an object. What else is no value of m is left to protobuf's own JSON, which has the words for it.
func (w *walker) message(m *protogen.Message, v any, at string) error {
	object, _ := v.(map[string]any)
	w.messages[m.Desc.FullName()]++
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, at := keyed(m, key), at+"."+key
		if field == nil {
			continue
		}
		f := w.form(field.Desc)
		switch {
		case f.key == "" && !fitsTag(key):
			return fmt.Errorf("%s: a key with such characters can't stand in a Go struct", at)
		case f.key != "" && f.key != key:
			return fmt.Errorf("%s: this key is %s elsewhere in the samples", at, f.key)
		}
		f.key, f.seen = key, f.seen+1
		if why := unfit(field); why != "" {
			return fmt.Errorf("%s: %s: leave the field out", at, why)
		}
		if object[key] == nil {
			f.null = true
			if known(field.Message) == "Value" {
				w.nulls = append(w.nulls, null{field, object, at})
			}
			continue
		}
		err := fits(field, object[key], at)
		read := func(v any) any {
			v, failed := w.value(f, value(field).Message, value(field).Desc.Kind(), v, at)
			err = cmp.Or(err, failed)
			return v
		}
		list, isList := object[key].([]any)
		entries, isMap := object[key].(map[string]any)
		switch {
		case isList && field.Desc.IsList():
			at += "[]"
			for i, v := range list {
				list[i] = read(v)
			}
		case isMap && field.Desc.IsMap():
			for key, v := range entries {
				entries[key] = read(v)
			}
		default:
			object[key] = read(object[key])
		}
		if err = cmp.Or(err, w.judge(f, at)); err != nil {
			return err
		}
	}
	return nil
}

// judge refuses a form that no plain struct has, and tells of odd ones.
func (w *walker) judge(f *form, at string) error {
	switch {
	case f.text && f.number:
		return fmt.Errorf("%s: text in some samples, and numbers in others: use one form", at)
	case f.odd && f.number:
		w.tell(at, "NaN and Infinity are no numbers of JSON: beside some, plain structs have the type any here")
	case f.hex:
		w.tell(at, "looks like hex, and is read as base64, as protobuf's JSON has bytes: convert it if it is hex")
	}
	return nil
}

// tell has one line for a path, of the first value that calls for one.
func (w *walker) tell(at, what string) {
	if !slices.ContainsFunc(w.told, func(line string) bool { return strings.HasPrefix(line, at+": ") }) {
		w.told = append(w.told, at+": "+what)
	}
}

// hexadecimal matches what is hardly base64: hex of one case, with a digit.
var hexadecimal = regexp.MustCompile(`^([0-9a-f]{2}){4,}$|^([0-9A-F]{2}){4,}$`)

// duration matches one of protobuf's JSON.
var duration = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)s$`)

// integer is one as Go reads it: protobuf's JSON has 2.0 and 1e3 too.
func integer(number string) string {
	odd := number == "-0" || strings.ContainsAny(number, ".eE") && json.Valid([]byte(number))
	if odd {
		if x, ok := new(big.Rat).SetString(number); ok && x.IsInt() {
			return x.Num().String()
		}
	}
	return number
}

// value walks one value of a field, which is an element of a list or of a map, too. It returns the value as plain
// structs read it.
func (w *walker) value(f *form, m *protogen.Message, kind protoreflect.Kind, v any, at string) (any, error) {
	text, isText := v.(string)
	switch known := known(m); {
	case known == "Wrapper":
		kind = m.Fields[0].Desc.Kind()
	case known == "Timestamp":
		t, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return v, fmt.Errorf("%s: %s is no google.protobuf.Timestamp: write 2026-01-02T15:04:05Z", at, brief(v))
		}
		f.odd = f.odd || t.Format(time.RFC3339Nano) != text
		return v, nil
	case known == "Duration" && !duration.MatchString(text):
		return v, fmt.Errorf("%s: %s is no google.protobuf.Duration: write 1.5s", at, brief(v))
	case known == "" && m != nil:
		if err := wants(m, v, at); err != nil {
			return v, err
		}
		return v, w.message(m, v, at)
	case known != "":
		return v, nil
	}
	number, isNumber := v.(json.Number)
	switch kind {
	case protoreflect.StringKind, protoreflect.BoolKind:
		return v, nil
	case protoreflect.BytesKind:
		data, err := base64.StdEncoding.DecodeString(text)
		f.odd = f.odd || err != nil || base64.StdEncoding.EncodeToString(data) != text
		f.hex = f.hex || hexadecimal.MatchString(text) && strings.ContainsAny(text, "0123456789")
		return v, nil
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		w.nan = w.nan || text == "NaN"
		if isText && !json.Valid([]byte(text)) { // NaN, Infinity
			isText, f.odd = false, true
		}
	case protoreflect.EnumKind:
		f.odd = f.odd || isText
		fallthrough
	default:
		was := cmp.Or(number.String(), text)
		if is := integer(was); is != was {
			var now any = is
			if isNumber {
				now = json.Number(is)
			}
			w.tell(at, fmt.Sprintf("%s in the sample, %s as a plain struct", brief(v), brief(now)))
			v = now
		}
	}
	f.text, f.number = f.text || isText, f.number || isNumber
	return v, nil
}

// fitsTag says whether encoding/json takes a key from a struct tag.
func fitsTag(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) < 0
}

// unfit says why a field is left out of plain structs; "" if it is not.
func unfit(f *protogen.Field) string {
	v := value(f)
	switch {
	case known(v.Message) == "Any":
		return "google.protobuf.Any holds types that the .proto does not name"
	case v.Desc.Kind() == protoreflect.GroupKind:
		return "plain structs have no groups and delimited fields"
	}
	return ""
}

// isNull says whether a field's values are nulls, which only say that they are there.
func isNull(f *protogen.Field) bool {
	of := value(f).Enum
	return of != nil && of.Desc.FullName() == "google.protobuf.NullValue"
}

// value describes the elements of a field.
func value(f *protogen.Field) *protogen.Field {
	if f.Desc.IsMap() {
		return f.Message.Fields[1]
	}
	return f
}

// original is a name as the .proto has it.
func original(d protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(d.FullName()), prefix+".")
}

// known is the name of a message that has a form of its own in JSON, Wrapper for each of the wrappers.
func known(m *protogen.Message) string {
	if m == nil || m.Desc.ParentFile().Package() != "google.protobuf" {
		return ""
	}
	switch name := string(m.Desc.Name()); name {
	case "Any", "Timestamp", "Duration", "FieldMask", "Empty", "Struct", "Value", "ListValue":
		return name
	case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue",
		"StringValue", "BytesValue":
		return "Wrapper"
	}
	return ""
}
