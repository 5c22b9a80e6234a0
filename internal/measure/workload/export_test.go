package workload

import "errors"

// DrawnSizes are the sizes of the messages of a drawn payload, and the share of draws that were too large.
var DrawnSizes = drawnSizes

// Patient is a context for opening.
var Patient = patient

// StreamLimit is what a server's frames say of calls on a connection.
var StreamLimit = streamLimit

// Changes says how JSON differs from that of a base.
func Changes(base, own string) (string, error) {
	c := changes{"base", map[string]string{}}
	theirs, err := valueOf([]byte(base))
	value, err2 := valueOf([]byte(own))
	c.between("request", theirs, value)
	return c.String(), errors.Join(err, err2)
}
