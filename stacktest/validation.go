package stacktest

import (
	"context"
	"errors"
	"fmt"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/allocproof"
	"github.com/rpcbench/rpcbench/internal/users"
)

// validation: each call validates its user once, in the server, with the one table of rules. The validator allocates for each email
// that it parses, so its objects count its uses.
func validation(s subject) error {
	const library = "github.com/go-playground/validator/v10"
	f, err := s.start(rpcbench.Config{})
	if err != nil {
		return err
	}
	defer f.Close()
	calls, err := prepare(f, 0)
	if err != nil {
		return err
	}
	check := rpcbench.NewValidator[rpcbench.User]()
	objects := func(one func(i int) error) (all, inClient int64, err error) {
		const rounds = 4
		round := func() {
			for i := range users.Round {
				err = errors.Join(err, one(i))
			}
		}
		round() // what a library builds once, it builds now
		profile, profileErr := allocproof.Run(func() {
			for range rounds {
				round()
			}
		})
		for root, n := range profile.Objects(library) {
			all += n
			if root == allocproof.Client {
				inClient += n
			}
		}
		return all, inClient, errors.Join(err, profileErr)
	}
	once, _, err := objects(func(i int) error {
		u := users.Sample(i, 0)
		return check(&u)
	})
	if err != nil {
		return err
	}
	all, inClient, err := objects(func(i int) error { return calls[i](context.Background()) })
	switch times := float64(all) / float64(once); {
	case err != nil:
		return err
	case float64(inClient) > 0.5*float64(once):
		return errors.New("the client validates the user: that is the server's work, and is billed to this stack alone")
	case times < 0.5:
		return fmt.Errorf("a call validates its user %.1f times: the server must do so once, with rpcbench.NewValidator", times)
	case times > 1.5:
		return fmt.Errorf("a call validates its user %.1f times: once is enough", times)
	}
	return nil
}
