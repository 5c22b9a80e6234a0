package rpcbench_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/binding"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// emailOf returns a valid address of n characters.
func emailOf(n int) string {
	const local, end = 64, "@example.com"
	labels := strings.Repeat(strings.Repeat("d", 50)+".", 10)
	return strings.Repeat("a", local) + "@" + labels[len(labels)-(n-local-len(end)):] + end[1:]
}

func TestRulesAtTheirEdges(t *testing.T) {
	var (
		set = func(change func(*rpcbench.User)) rpcbench.User {
			u := rpcbench.Sample(0, 0)
			change(&u)
			return u
		}
		email    = func(s string) rpcbench.User { return set(func(u *rpcbench.User) { u.Email = s }) }
		name     = func(s string) rpcbench.User { return set(func(u *rpcbench.User) { u.Name = s }) }
		password = func(s string) rpcbench.User { return set(func(u *rpcbench.User) { u.Password = s }) }
		avatar   = func(n int) rpcbench.User { return set(func(u *rpcbench.User) { u.Avatar = make([]byte, n) }) }
		id       = func(s string) rpcbench.User { return set(func(u *rpcbench.User) { u.ID = s }) }
	)
	const smile = "\U0001F600" // 4 bytes, 1 character
	plain, generated := rpcbench.NewValidator[rpcbench.User](), rpcbench.NewValidator[userv1.User]()
	for _, c := range []struct {
		why    string
		user   rpcbench.User
		broken string // "" for a valid user
	}{
		{"nothing is wrong", rpcbench.Sample(0, 0), ""},

		{"name of 3", name("Ann"), "name min=4"},
		{"name of 4", name("Anna"), ""},
		{"name of 3 characters in 12 bytes", name(strings.Repeat(smile, 3)), "name min=4"},
		{"name of 4 characters in 16 bytes", name(strings.Repeat(smile, 4)), ""},
		{"name of 100", name(strings.Repeat("n", 100)), ""},
		{"name of 101", name(strings.Repeat("n", 101)), "name max=100"},
		{"name of 100 characters in 400 bytes", name(strings.Repeat(smile, 100)), ""},
		{"name of 101 characters in 404 bytes", name(strings.Repeat(smile, 101)), "name max=100"},
		{"no name", name(""), "name min=4"},

		{"password of 3", password("pwd"), "password min=4"},
		{"password of 4", password("pass"), ""},
		{"password of 72", password(strings.Repeat("p", 72)), ""},
		{"password of 73", password(strings.Repeat("p", 73)), "password max=72"},
		{"password of 72 characters in 288 bytes", password(strings.Repeat(smile, 72)), ""},
		{"no password", password(""), "password min=4"},

		{"no email", email(""), "email required"},
		{"email without @", email("anna.example.com"), "email email"},
		{"email without a name", email("@example.com"), "email email"},
		{"email without a domain", email("anna@"), "email email"},
		{"email at a domain without a dot", email("anna@example"), "email email"},
		{"email with a space before it", email(" anna@example.com"), "email email"},
		{"email with a name before it", email("Anna <anna@example.com>"), "email email"},
		{"two emails", email("anna@example.com,bob@example.com"), "email email"},
		{"email with a tag", email("anna+tag@example.com"), ""},
		{"email outside of ASCII", email("änne@exämple.com"), ""},
		{"email of 254", email(emailOf(254)), ""},
		{"email of 255", email(emailOf(255)), "email max=254"},
		{"of two rules of one field the first is told", email(strings.Repeat("a", 255)), "email email"},

		{"avatar of 1 MiB", avatar(rpcbench.MaxAvatar), ""},
		{"avatar of a byte more", avatar(rpcbench.MaxAvatar + 1), "avatar max=1048576"},
		{"empty avatar", avatar(0), ""},

		{"any id, the service sets it", id("7"), ""},
		{"an id longer than any limit", id(strings.Repeat("7", 2<<20)), ""},
		{"an id that is no text", id("\xff"), ""},

		{"every field is told, in order", rpcbench.User{Avatar: make([]byte, rpcbench.MaxAvatar+1)},
			"email required, name min=4, password min=4, avatar max=1048576"},
	} {
		t.Run(c.why, func(t *testing.T) {
			err := plain(&c.user)
			converted := binding.Convert[userv1.User](&c.user)
			require.Equal(t, err, generated(converted), "the same for the same content, whichever type holds it")
			if c.broken == "" {
				require.NoError(t, err)
				return
			}
			e, ok := errors.AsType[*rpcbench.Error](err)
			require.True(t, ok, "got %v", err)
			require.Equal(t, rpcbench.Invalid, e.Code)
			require.EqualError(t, e, "rpcbench: invalid: "+c.broken)
		})
	}
	require.Len(t, emailOf(254), 254)
}

// Rules that name no field would be ignored in silence, so the mistake is told when the validator is made.
func TestValidatorRefusesOtherFields(t *testing.T) {
	type missing struct {
		ID       string `json:"id"`
		Email    string `json:"email"`
		Name     string `json:"name"`
		Password string `json:"password"`
	}
	type additional struct {
		ID       string `json:"id"`
		Email    string `json:"email"`
		Name     string `json:"name"`
		Password string `json:"password"`
		Avatar   []byte `json:"avatar"`
		More     string
	}
	type misspelt struct {
		ID       string `json:"id"`
		Email    string `json:"e-mail"`
		Name     string `json:"name"`
		Password string `json:"password"`
		Avatar   []byte `json:"avatar"`
	}
	type untagged struct{ ID, Email, Name, Password, Avatar string }
	for _, c := range []struct {
		why, typ string
		make     func()
	}{
		{"a field is missing", "missing", func() { rpcbench.NewValidator[missing]() }},
		{"a field that User lacks", "additional", func() { rpcbench.NewValidator[additional]() }},
		{"a misspelt json name", "misspelt", func() { rpcbench.NewValidator[misspelt]() }},
		{"no json names", "untagged", func() { rpcbench.NewValidator[untagged]() }},
	} {
		want := "rpcbench: the fields of rpcbench_test." + c.typ + " are not those of User, by their json names"
		t.Run(c.why, func(t *testing.T) { require.PanicsWithValue(t, want, c.make) })
	}
	type unexported struct {
		state    int
		ID       string `json:"id"`
		Email    string `json:"email"`
		Name     string `json:"name"`
		Password string `json:"password"`
		Avatar   []byte `json:"avatar"`
	}
	require.NotPanics(t, func() { rpcbench.NewValidator[unexported]() }, "generated types have fields of their own: %v", unexported{}.state)
}

// An exported field without a rule would cost each stack of that type an allocation per call.
func TestValidatorsAllocateTheSame(t *testing.T) {
	u := rpcbench.Sample(0, 1000)
	g := binding.Convert[userv1.User](&u)
	plain, generated := rpcbench.NewValidator[rpcbench.User](), rpcbench.NewValidator[userv1.User]()
	// The least of many single runs: under -race a sync.Pool forgets a part of what it is given.
	least := func(validate func()) float64 {
		n := testing.AllocsPerRun(1, validate)
		for range 100 {
			n = min(n, testing.AllocsPerRun(1, validate))
		}
		return n
	}
	p, q := least(func() { _ = plain(&u) }), least(func() { _ = generated(g) })
	require.LessOrEqual(t, p, 9.0, "net/mail's parser of addresses takes 5")
	require.Equal(t, p, q, "plain and generated type")
}
