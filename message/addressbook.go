package message

import (
	"fmt"
	"strings"
)

// AddressBook is people with phones: what most business messages look like, a few short strings beside a number and an
// enum, nested twice. Names go beyond ASCII.
type AddressBook struct {
	People []*Person `json:"people,omitempty" xml:"people,omitempty" msgpack:"people,omitempty"`
}

// Person is an entry of an AddressBook.
type Person struct {
	ID     int32    `json:"id,omitempty" xml:"id,omitempty" msgpack:"id,omitempty"`
	Name   string   `json:"name,omitempty" xml:"name,omitempty" msgpack:"name,omitempty"`
	Email  string   `json:"email,omitempty" xml:"email,omitempty" msgpack:"email,omitempty"`
	Phones []*Phone `json:"phones,omitempty" xml:"phones,omitempty" msgpack:"phones,omitempty"`
}

// Phone is a number and what it rings.
type Phone struct {
	Number string    `json:"number,omitempty" xml:"number,omitempty" msgpack:"number,omitempty"`
	Type   PhoneType `json:"type,omitempty" xml:"type,omitempty" msgpack:"type,omitempty"`
}

// PhoneType is an enum, which is a number in every format but protobuf's JSON.
type PhoneType int32

// What a phone can be. Zero is none of them.
const (
	Mobile PhoneType = iota + 1
	Home
	Work
)

func newAddressBook() *AddressBook {
	r := source(1)
	var b AddressBook
	for _, name := range []string{
		"Anna Novak", "Łukasz Nowak", "José Garcia", "Zoë Miller", "Søren Larsen", "Mei Chen", "Omar Haddad",
	} {
		_, last, _ := strings.Cut(name, " ")
		email := fmt.Sprintf("%s.%02d@example.com", strings.ToLower(last), r.IntN(100))
		p := &Person{ID: 1 + r.Int32N(1_000_000), Name: name, Email: email}
		for range 1 + r.IntN(3) {
			number := fmt.Sprintf("+1 555 %07d", r.IntN(10_000_000))
			p.Phones = append(p.Phones, &Phone{Number: number, Type: Mobile + PhoneType(r.Int32N(int32(Work)))})
		}
		b.People = append(b.People, p)
	}
	return &b
}
