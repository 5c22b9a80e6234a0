package xmlstd_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/xmlstd"
)

var _ codec.Codec = xmlstd.Codec{}

// A user as documents of XML schemas have one, byte for byte.
const whole = `<User><id>7</id><email>anna@example.com</email><name>&lt;b&gt;&amp;&#39;&#34;&#xD;&#xA;&#x9;</name>` +
	`<password>password</password><avatar>AP8=</avatar></User>`

func TestRoundTrip(t *testing.T) {
	c := xmlstd.Codec{}
	u := rpcbench.User{ID: "7", Email: "anna@example.com", Name: "<b>&'\"\r\n\t", Password: "password",
		Avatar: []byte{0, 255}}
	data, err := c.Marshal(binding.Convert[xmlstd.User](&u))
	require.NoError(t, err)
	require.Equal(t, whole, string(data))

	data, err = c.Marshal(new(xmlstd.Flex))
	require.NoError(t, err)
	require.Equal(t, "<Flex></Flex>", string(data), "zero fields are left out")
}

func TestUnmarshal(t *testing.T) {
	const start, end = "<User><email>a</email>", "</User>"
	for _, c := range []struct {
		why, data string
		into      any
		ok        bool
	}{
		{"nothing is wrong", whole, new(xmlstd.User), true},
		{"a declaration and a comment before it, white space after it", "<?xml version=\"1.0\"?>\n<!-- a -->" + whole +
			"\n\t", new(xmlstd.User), true},
		{"comments and instructions after it", whole + " <!-- a -->\n<?a b?><!-- c -->\n", new(xmlstd.User), true},

		{"nothing", "", new(xmlstd.User), false},
		{"no base64", start + "<avatar>%%%%</avatar>" + end, new(xmlstd.User), false},
		{"base64 that is cut off", start + "<avatar>QUJ</avatar>" + end, new(xmlstd.User), false},
		{"garbage after it", whole + "x", new(xmlstd.User), false},
		{"another after it", whole + whole, new(xmlstd.User), false},
		{"an end after it", whole + end, new(xmlstd.User), false},
		{"text after it, behind a comment", whole + "<!-- a --> x", new(xmlstd.User), false},
		{"an element after it, behind a comment", whole + "<!-- a --><x/>", new(xmlstd.User), false},
		{"a comment after it that does not end", whole + "<!-- a", new(xmlstd.User), false},
		{"a directive after it", whole + "<!DOCTYPE x>", new(xmlstd.User), false},
	} {
		t.Run(c.why, func(t *testing.T) {
			if err := (xmlstd.Codec{}).Unmarshal([]byte(c.data), c.into); c.ok {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
		})
	}
	for n := range whole {
		require.Error(t, xmlstd.Codec{}.Unmarshal([]byte(whole[:n]), new(xmlstd.User)), "the first %d of %d bytes", n,
			len(whole))
	}
}
