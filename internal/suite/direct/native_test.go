package direct

import (
	"strconv"

	"github.com/go-playground/validator/v10"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

// rules are those of the API, by the names of Go's fields.
func rules(user any, id string) *validator.Validate {
	validate := validator.New(validator.WithRequiredStructEnabled())
	validate.RegisterStructValidationMapRules(map[string]string{
		id:         "-",
		"Email":    "required,email,max=254",
		"Name":     "min=4,max=100",
		"Password": "min=4,max=72",
		"Avatar":   "max=" + strconv.Itoa(rpcbench.MaxAvatar),
	}, user)
	return validate
}

// toProtobuf returns the users as protobuf's.
func toProtobuf(asked []rpcbench.User) (all []*userv1.User) {
	for i := range asked {
		all = append(all, binding.Convert[userv1.User](&asked[i]))
	}
	return all
}

// answer is the reply to a user of protobuf's, who gets an id.
func answer(u *userv1.User) *userv1.CreateUserResponse {
	u.Id = rpcbench.UserID
	return &userv1.CreateUserResponse{Code: rpcbench.OKCode, Message: rpcbench.OKMessage, User: u}
}
