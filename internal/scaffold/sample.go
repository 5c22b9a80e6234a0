package scaffold

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	deepest = 100     // levels of a sample
	largest = 2 << 20 // bytes of a sample, which some stacks refuse
)

// readSamples reads the JSON values of a file, or of the .json files of a folder in the order of their names.
func readSamples(name string) (values []any, err error) {
	files := []string{name}
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(name, "*.json")); err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s: no .json file in this folder", name)
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		for {
			var v any
			err := d.Decode(&v)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: value %d: %w", file, len(values)+1, err)
			}
			if depth(v) > deepest {
				return nil, fmt.Errorf("%s: nested deeper than %d levels", file, deepest)
			}
			if len(compact(v)) >= largest {
				return nil, fmt.Errorf("%s: 2 MiB of JSON or more: stacks refuse such messages", file)
			}
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("%s: no JSON value", name)
	}
	return values, nil
}

func compact(v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // which was decoded
	return bytes.TrimSpace(out.Bytes())
}

func depth(v any) (deep int) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			deep = max(deep, depth(inner))
		}
	case []any:
		for _, inner := range v {
			deep = max(deep, depth(inner))
		}
	default:
		return 0
	}
	return deep + 1
}

// form is how a field stands in the samples.
type form struct {
	key    string
	kind   string // "text" or "number" for numbers and enums, "time" or "text" for a Timestamp
	seen   int    // messages that have it
	always bool   // it is in every one, a zero too
}

// walker goes through samples as their messages say.
type walker struct {
	forms    map[protoreflect.FullName]*form
	messages map[protoreflect.FullName]int // how many of each there are
	lossy    map[string]string             // by path without indices: what a format can't tell
	later    []func()                      // after all samples, when the forms are known
	leaf     func(l leaf) any              // replaces a scalar

	hollow bool // a sample has an empty Struct or the like
}

// leaf is a scalar of a sample. path leads to it from the message by fields, the first element of a list each; nil if
// something else is on the way.
type leaf struct {
	field *protogen.Field
	kind  protoreflect.Kind
	path  []*protogen.Field
	value any
}

func newWalker() *walker {
	return &walker{
		forms: map[protoreflect.FullName]*form{}, messages: map[protoreflect.FullName]int{}, lossy: map[string]string{},
	}
}

func (w *walker) finish() {
	for _, f := range w.later {
		f()
	}
	w.later = nil
}

// loses notes that a value at a path does not survive each format.
func (w *walker) loses(at, why string) {
	if w.leaf == nil {
		w.lossy[at] = why
	}
}

// message walks an object. Paths begin with the sample's name.
func (w *walker) message(m *protogen.Message, v any, at string, path []*protogen.Field) error {
	object, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: %s where an object of %s belongs", at, brief(v), original(m.Desc))
	}
	w.messages[m.Desc.FullName()]++
	found, arms := 0, map[*protogen.Oneof]string{}
	for _, field := range m.Fields {
		var key string
		for _, name := range slices.Compact([]string{string(field.Desc.Name()), field.Desc.JSONName()}) {
			if _, ok := object[name]; !ok {
				continue
			}
			if found++; key != "" {
				return fmt.Errorf("%s: both %s and %s, which are one field", at, key, name)
			}
			key = name
		}
		if key == "" {
			continue
		}
		f := w.form(field)
		if f.key == "" {
			f.key = key
		}
		here := at + "." + key
		if f.key != key {
			return fmt.Errorf("%s: this key is %s elsewhere in the samples", here, f.key)
		}
		if object[key] == nil && !(isAny(field) && !field.Desc.IsMap()) {
			w.loses(here, "null and absent are one value")
			continue
		}
		if w.leaf == nil {
			f.seen++
		}
		if o := field.Oneof; o != nil && !o.Desc.IsSynthetic() {
			if arms[o] != "" {
				return fmt.Errorf("%s: both %s and %s, of which a oneof has one", at, arms[o], key)
			}
			arms[o] = key
		}
		next := path
		if path != nil {
			next = append(slices.Clip(path), field)
		}
		replaced, err := w.field(field, f, object[key], here, next)
		if err != nil {
			return err
		}
		object[key] = replaced
	}
	if found < len(object) {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			is := func(f *protogen.Field) bool { return key == string(f.Desc.Name()) || key == f.Desc.JSONName() }
			if !slices.ContainsFunc(m.Fields, is) {
				return fmt.Errorf("%s.%s: %s has no such field", at, key, original(m.Desc))
			}
		}
	}
	return nil
}

func (w *walker) form(field *protogen.Field) *form {
	name := field.Desc.FullName()
	if w.forms[name] == nil {
		w.forms[name] = &form{}
	}
	return w.forms[name]
}

func (w *walker) field(field *protogen.Field, f *form, v any, at string, path []*protogen.Field) (any, error) {
	d := field.Desc
	switch {
	case d.IsMap():
		object, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: %s where a map belongs", at, brief(v))
		}
		w.empty(len(object) == 0, at)
		for _, key := range slices.Sorted(maps.Keys(object)) {
			here := at + "." + key
			if _, err := number(d.MapKey().Kind(), key); err != nil {
				return nil, fmt.Errorf("%s: the key: %w", here, err)
			}
			value, err := w.element(field, field.Message.Fields[1], f, object[key], here, nil)
			if err != nil {
				return nil, err
			}
			object[key] = value
		}
		return object, nil
	case d.IsList():
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%s: %s where a list belongs", at, brief(v))
		}
		w.empty(len(list) == 0, at)
		for i := range list {
			if i > 0 {
				path = nil
			}
			value, err := w.element(field, field, f, list[i], at+"[]", path)
			if err != nil {
				return nil, fmt.Errorf("%w (element %d of the list)", err, i+1)
			}
			list[i] = value
		}
		return list, nil
	}
	if !d.HasPresence() {
		zero := v == "" || v == false
		if s, ok := asNumber(v); ok && d.Kind() != protoreflect.StringKind {
			x, err := strconv.ParseFloat(s, 64)
			zero = zero || err == nil && x == 0
		}
		if d.Kind() == protoreflect.EnumKind {
			zero = zero || v == string(d.Enum().Values().ByNumber(0).Name())
		}
		if zero && d.Kind() == protoreflect.BytesKind {
			w.empty(true, at)
		} else if zero {
			w.later = append(w.later, func() {
				if f.seen == w.messages[field.Parent.Desc.FullName()] {
					f.always = true
				} else {
					w.loses(at, "a zero and absent are one value")
				}
			})
		}
	}
	return w.element(field, field, f, v, at, path)
}

func (w *walker) empty(is bool, at string) {
	if is {
		w.loses(at, "empty and absent are one value")
	}
}

// element walks one value of a field, or of a map whose values are described by value.
func (w *walker) element(field, value *protogen.Field, f *form, v any, at string, path []*protogen.Field) (any, error) {
	d := value.Desc
	if v == nil && !isAny(value) {
		return nil, fmt.Errorf("%s: null among values of a list or a map", at)
	}
	wrong := func() error {
		what := d.Kind().String()
		if value.Message != nil {
			what = string(original(value.Message.Desc))
		}
		return fmt.Errorf("%s: %s where %s belongs", at, brief(v), what)
	}
	kind := d.Kind()
	if kind == protoreflect.GroupKind {
		return nil, fmt.Errorf("%s: groups can't be sent as plain structs: leave the field out of the samples", at)
	}
	if kind == protoreflect.MessageKind {
		switch known := knownType(value); known {
		case "":
			return v, w.message(value.Message, v, at, path)
		case "Any":
			return nil, fmt.Errorf("%s: google.protobuf.Any holds types that the .proto does not name: leave the field out", at)
		case "Timestamp":
			return v, w.canonical(f, &timestamppb.Timestamp{}, v, at)
		case "Duration":
			return v, w.canonical(f, &durationpb.Duration{}, v, at)
		case "FieldMask":
			return v, w.canonical(f, &fieldmaskpb.FieldMask{}, v, at)
		case "Empty":
			if object, ok := v.(map[string]any); !ok || len(object) > 0 {
				return nil, wrong()
			}
			return v, nil
		case "Struct", "Value", "ListValue":
			_, object := v.(map[string]any)
			_, list := v.([]any)
			if known == "Struct" && !object || known == "ListValue" && !list {
				return nil, wrong()
			}
			single := !field.Desc.IsList() && !field.Desc.IsMap()
			if single && (v == nil || len(compact(v)) == 2 && (object || list)) {
				w.loses(at, "empty and absent are one value")
				w.hollow = true
			}
			return w.dynamic(value, v, at)
		}
		kind = value.Message.Fields[0].Desc.Kind() // a wrapper's
	}
	text, isText := v.(string)
	switch kind {
	case protoreflect.BoolKind:
		if _, ok := v.(bool); !ok {
			return nil, wrong()
		}
		return v, nil
	case protoreflect.StringKind:
		if !isText {
			return nil, wrong()
		}
	case protoreflect.BytesKind:
		data, err := base64.StdEncoding.DecodeString(text)
		if !isText || err != nil || base64.StdEncoding.EncodeToString(data) != text {
			return nil, fmt.Errorf("%s: %s where base64 with its padding belongs", at, brief(v))
		}
	case protoreflect.EnumKind:
		if d.Enum().FullName() == "google.protobuf.NullValue" {
			return nil, fmt.Errorf("%s: google.protobuf.NullValue is lost in plain structs: leave the field out", at)
		}
		if isText && d.Enum().Values().ByName(protoreflect.Name(text)) == nil {
			return nil, fmt.Errorf("%s: %s has no value %q", at, original(d.Enum()), text)
		}
		if _, err := number(protoreflect.Int32Kind, v); !isText && err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
	default:
		if _, err := number(kind, v); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		w.precise(kind, v, at)
	}
	if kind != protoreflect.StringKind && kind != protoreflect.BytesKind {
		is := map[bool]string{true: "text", false: "number"}[isText]
		if f.kind != "" && f.kind != is {
			return nil, fmt.Errorf("%s: %s, and a %s elsewhere in the samples", at, brief(v), f.kind)
		}
		f.kind = is
	}
	if w.leaf != nil {
		return w.leaf(leaf{value, kind, path, v}), nil
	}
	return v, nil
}

// canonical checks a value that protobuf's JSON writes as one string.
func (w *walker) canonical(f *form, m proto.Message, v any, at string) error {
	text, ok := v.(string)
	if err := protojson.Unmarshal([]byte(strconv.Quote(text)), m); !ok || err != nil {
		return fmt.Errorf("%s: %s where %s belongs", at, brief(v), m.ProtoReflect().Descriptor().FullName())
	}
	data, err := protojson.Marshal(m)
	again, utc := strings.Trim(string(data), `"`), ""
	if _, ok := m.(*timestamppb.Timestamp); ok {
		t, parseErr := time.Parse(time.RFC3339Nano, text)
		if utc = t.UTC().Format(time.RFC3339Nano); f.kind == "" {
			f.kind = "time"
		}
		if parseErr != nil || t.Format(time.RFC3339Nano) != text {
			f.kind = "text"
		}
	}
	w.later = append(w.later, func() {
		if f.kind == "time" {
			again = utc
		}
		if err != nil || again != text {
			w.loses(at, "protobuf writes "+again)
		}
	})
	return nil
}

// dynamic walks a value of google.protobuf.Struct, whose numbers are doubles.
func (w *walker) dynamic(field *protogen.Field, v any, at string) (_ any, err error) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if v[key], err = w.dynamic(field, v[key], at+"."+key); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = w.dynamic(field, v[i], at+"[]"); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if _, err := number(protoreflect.DoubleKind, v); err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		w.precise(protoreflect.DoubleKind, v, at)
		if w.leaf != nil {
			return w.leaf(leaf{field, protoreflect.DoubleKind, nil, v}), nil
		}
	case string:
		if w.leaf != nil {
			return w.leaf(leaf{field, protoreflect.StringKind, nil, v}), nil
		}
	}
	return v, nil
}

// precise notes numbers with more digits than their kind has.
func (w *walker) precise(kind protoreflect.Kind, v any, at string) {
	s, _ := asNumber(v)
	narrow, _ := strconv.ParseFloat(s, 32)
	wide, _ := strconv.ParseFloat(s, 64)
	float := strconv.FormatFloat(narrow, 'g', -1, 32) == strconv.FormatFloat(wide, 'g', -1, 64)
	double := strings.ContainsAny(s, ".eE") || strconv.FormatFloat(wide, 'f', -1, 64) == s
	if kind == protoreflect.FloatKind && !float || kind == protoreflect.DoubleKind && !double {
		w.loses(at, "more digits than a "+kind.String()+" has")
	}
}

func asNumber(v any) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		return v.String(), true
	case string:
		return v, true
	}
	return "", false
}

// number checks that Go reads a number of a kind, or a map's key, from JSON. The length is protobuf's.
func number(kind protoreflect.Kind, v any) (length int, err error) {
	s, ok := asNumber(v)
	if !ok {
		return 0, fmt.Errorf("%s where a number belongs", brief(v))
	}
	bits, u := 64, uint64(0)
	if strings.HasSuffix(kind.String(), "32") || kind == protoreflect.FloatKind {
		bits = 32
	}
	switch kind {
	case protoreflect.StringKind:
		return 0, nil
	case protoreflect.BoolKind:
		_, err = strconv.ParseBool(s)
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		_, err = strconv.ParseFloat(s, bits)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		u, err = strconv.ParseUint(s, 10, bits)
	default:
		var n int64
		n, err = strconv.ParseInt(s, 10, bits)
		if u = uint64(n); kind == protoreflect.Sint32Kind || kind == protoreflect.Sint64Kind {
			u = u<<1 ^ uint64(n>>63)
		}
	}
	if strings.ContainsAny(s, "nNiIxX_") && err == nil && kind != protoreflect.BoolKind || s == "" {
		err = strconv.ErrSyntax // NaN and infinities are not JSON
	}
	if err != nil {
		return 0, fmt.Errorf("%s where %s belongs", brief(v), kind)
	}
	for length = 1; u >= 1<<7; length++ {
		u >>= 7
	}
	return length, nil
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

// original is a name as the .proto has it.
func original(d protoreflect.Descriptor) protoreflect.FullName {
	return protoreflect.FullName(strings.TrimPrefix(string(d.FullName()), prefix+"."))
}

// knownType is the name of a message that has a form of its own in JSON, Wrapper for each of the wrappers.
func knownType(f *protogen.Field) string {
	if f.Message == nil || f.Message.Desc.ParentFile().Package() != "google.protobuf" {
		return ""
	}
	switch name := string(f.Message.Desc.Name()); name {
	case "Any", "Timestamp", "Duration", "FieldMask", "Empty", "Struct", "Value", "ListValue":
		return name
	case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue",
		"StringValue", "BytesValue":
		return "Wrapper"
	}
	return ""
}

// isAny says whether null is a value of the field.
func isAny(f *protogen.Field) bool { return knownType(f) == "Value" }
