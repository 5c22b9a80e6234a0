package message

import (
	"fmt"
	"strings"
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
